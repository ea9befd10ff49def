"""From distributed block IR to LLVM IR, for every target: one emitter, with hooks where machines differ."""
