"""The machine that runs PTX finds what it is there to find."""

import numpy as np
import pytest
from ptx_machine import Machine, MachineError, Memory

START = 4096
HEADER = """
.visible .entry k(
	.param .u64 k_param_0
)
.maxntid 64
{
	.shared .align 16 .b8 area[256];
	ld.param.b64 	%rd1, [k_param_0];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
	mov.b64 	%rd4, area;
	add.s64 	%rd5, %rd4, %rd2;
	xor.b32 	%r2, %r1, 63;
	mul.wide.u32 	%rd6, %r2, 4;
	add.s64 	%rd7, %rd4, %rd6;
"""
WRITE = "\tst.shared.b32 \t[%rd5], %r1;\n"
READ_OTHER = "\tld.shared.b32 \t%r3, [%rd7];\n"
BARRIER = "\tbar.sync \t0;\n"
RESULT = "\tst.global.b32 \t[%rd3], %r3;\n"
END = "\tret;\n\n}\n"


def run(body: str, elements: int = 64) -> np.ndarray:
    """Run one program over a buffer of `elements` 32-bit integers."""
    memory = Memory(START + 4096)
    memory.exists[START : START + 4 * elements] = True
    Machine(HEADER + body + END).run([START.to_bytes(8, "little")], memory, 1)
    return memory.bytes[START : START + 4 * elements].view(np.int32)


def test_lanes_talk_through_shared_memory() -> None:
    assert (run(WRITE + BARRIER + READ_OTHER + RESULT) == 63 - np.arange(64)).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (WRITE + READ_OTHER + RESULT, "reads what another lane wrote, without a barrier between"),
        (WRITE + BARRIER + READ_OTHER + WRITE, "writes what another lane reads, without a barrier between"),
        (WRITE + "\tst.shared.b32 \t[%rd7], %r1;\n", "two lanes write different values, without a barrier between"),
        (READ_OTHER + RESULT, "reads memory that nobody wrote"),
        ("\tst.global.b32 \t[%rd3+4], %r1;\n", "an address outside of all buffers"),
        ("\tst.global.b32 \t[%rd3+2], %r1;\n", "an address is not a multiple of 4"),
        ("\tsetp.lt.u32 \t%p1, %r1, 32;\n\t@%p1 bra \tEND;\n" + BARRIER + "END:\n", "not all lanes arrive"),
        (
            "\tsetp.lt.u32 \t%p1, %r1, 8;\n\t@%p1 bra \tEND;\n\tshfl.sync.bfly.b32 \t%r3, %r1, 1, 31, -1;\nEND:\n",
            "not all lanes take part",
        ),
        ("LOOP:\n\tbra \tLOOP;\n", "the program does not end"),
        ("\tfoo.b32 \t%r3, %r1;\n", "unknown instruction"),
    ],
)
def test_mistakes_are_errors(body: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptx_machine.MOST_STEPS", 2000)
    with pytest.raises(MachineError, match=message):
        run(body)


def test_equal_values_may_be_written_together() -> None:
    assert (run("\tmov.b32 \t%r3, 5;\n\tst.shared.b32 \t[%rd4], %r3;\n" + RESULT) == 5).all()


def test_branches_join_again() -> None:
    body = (
        "\tsetp.lt.u32 \t%p1, %r1, 10;\n\tmov.b32 \t%r3, 1;\n\t@%p1 bra \tTHEN;\n\tmov.b32 \t%r3, 2;\nTHEN:\n"
        + BARRIER
        + RESULT
    )
    assert (run(body) == np.where(np.arange(64) < 10, 1, 2)).all()


def test_shuffles_cross_lanes_of_a_warp() -> None:
    lanes = np.arange(64)
    up = run("\tshfl.sync.up.b32 \t%r3, %r1, 3, 0, -1;\n" + RESULT)
    assert (up == np.where(lanes % 32 >= 3, lanes - 3, lanes)).all()
    assert (run("\tshfl.sync.bfly.b32 \t%r3, %r1, 5, 31, -1;\n" + RESULT) == (lanes ^ 5)).all()
    assert (run("\tshfl.sync.idx.b32 \t%r3, %r1, 7, 31, -1;\n" + RESULT) == lanes // 32 * 32 + 7).all()
