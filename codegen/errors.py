"""What the compiler raises."""


class CodegenError(Exception):
    """Base of the compiler's own errors."""


class VerificationError(CodegenError):
    """A kernel breaks a rule of the IR."""


class KernelError(CodegenError):
    """A kernel that a user wrote cannot be compiled. The message ends with the line of the source, with carets.

    Attributes
    ----------
    file : str
        The file of that line; empty if there is none.
    line : int
    """

    file: str = ""
    line: int = 0


class TargetError(CodegenError):
    """A machine cannot be used: no driver, no device, too little memory. The message says what to do."""


class InternalCompilerError(CodegenError):
    """The compiler failed on a valid kernel; the message names the stage and how to reproduce it."""


class OutOfMemoryError(TargetError, MemoryError):
    """A device has no memory left, even after its cached blocks were released."""
