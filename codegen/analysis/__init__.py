"""What passes and the verifier can ask about a kernel; nothing here changes one."""
