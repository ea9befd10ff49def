"""The pool of memory blocks: sizes, reuse, limits, accounts, finalisers and threads."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.targets.pool import BLOCKS_PER_CLASS, SMALLEST, Block, Pool, PooledMemory, block_size, readable


class Source:
    """Counts blocks like an allocator with so many bytes."""

    def __init__(self, capacity: int = 1 << 40) -> None:
        self.capacity = capacity
        self.live: dict[int, int] = {}
        self.created = 0

    def create(self, size: int) -> Block:
        if sum(self.live.values()) + size > self.capacity:
            raise MemoryError("full")
        self.created += 1
        self.live[self.created] = size
        return Block(self.created)

    def destroy(self, block: Block, size: int) -> None:
        assert self.live.pop(block.address) == size


def pool_of(source: Source, limit: int = 1 << 40) -> Pool:
    return Pool(source.create, source.destroy, limit)


@given(st.integers(0, 1 << 45))
def test_block_holds_the_request_and_wastes_little(nbytes):
    size = block_size(nbytes)
    assert size >= nbytes
    assert size % SMALLEST == 0 or size < 4 * SMALLEST
    assert size == block_size(size)
    if nbytes > SMALLEST:
        assert size - nbytes < (size // 5 + 1 if nbytes < 1 << 24 else size // 17 + 1)


def test_block_sizes_ascend():
    sizes = [block_size(nbytes) for nbytes in range(0, 5000)]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) < 20


def test_freed_block_is_reused_for_a_similar_size():
    source = Source()
    pool = pool_of(source)
    first = PooledMemory(pool, 1000)
    address = first.address
    del first
    second = PooledMemory(pool, 1010)
    assert second.address == address
    assert source.created == 1


def test_accounts():
    pool = pool_of(Source())
    memories = [PooledMemory(pool, 1024) for _ in range(4)]
    assert pool.usage() == (4096, 0, 4096)
    del memories[:3]
    assert pool.usage() == (1024, 3072, 4096)
    pool.release_cached()
    assert pool.usage() == (1024, 0, 4096)
    memories.append(PooledMemory(pool, 1024))
    assert pool.usage() == (2048, 0, 4096)


def test_cache_is_bounded_and_the_longest_unused_goes_first():
    source = Source()
    pool = pool_of(source, limit=4096)
    old, middle, new = (PooledMemory(pool, size) for size in (2048, 1024, 2560))
    addresses = [memory.address for memory in (old, middle, new)]
    del old, middle, new
    assert pool.usage()[:2] == (0, 3584)
    assert set(source.live) == set(addresses[1:])


def test_number_of_free_blocks_is_bounded():
    source = Source()
    pool = pool_of(source)
    memories = [PooledMemory(pool, 8) for _ in range(BLOCKS_PER_CLASS + 50)]
    memories.clear()
    assert len(source.live) == BLOCKS_PER_CLASS


def test_cached_blocks_make_room_when_memory_is_short():
    source = Source(capacity=4096)
    pool = pool_of(source)
    small = [PooledMemory(pool, 1024) for _ in range(3)]
    small.clear()
    large = PooledMemory(pool, 4096)
    assert list(source.live.values()) == [4096]
    with pytest.raises(MemoryError):
        PooledMemory(pool, 1)
    del large
    assert pool.usage()[0] == 0


def test_finaliser_does_not_wait_for_the_lock():
    pool = pool_of(Source())
    memory = PooledMemory(pool, 100)
    pool.before_fork()
    try:
        del memory  # would hang if it waited
    finally:
        pool.after_fork(in_child=False)
    assert pool.usage()[:2] == (0, SMALLEST)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5000)), max_size=60), st.integers(0, 20000))
def test_any_order_keeps_the_accounts(steps, limit):
    source = Source()
    pool = pool_of(source, limit)
    held: list[PooledMemory] = []
    for take, number in steps:
        if take or not held:
            held.append(PooledMemory(pool, number))
        else:
            del held[number % len(held)]
        in_use, cached, peak = pool.usage()
        assert in_use == sum(block_size(memory.nbytes) for memory in held) <= peak
        assert cached <= limit
        assert sum(source.live.values()) == in_use + cached
        assert len({memory.address for memory in held}) == len(held)


def test_threads_never_share_a_block():
    pool = pool_of(Source())
    seen: set[int] = set()
    failures: list[int] = []
    lock = threading.Lock()

    def work() -> None:
        for round_number in range(300):
            memory = PooledMemory(pool, 300 + round_number % 3)
            with lock:
                if memory.address in seen:
                    failures.append(memory.address)
                seen.add(memory.address)
            with lock:
                seen.discard(memory.address)
            del memory

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert pool.usage()[0] == 0


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (1 << 40, "1 TiB"), (1 << 52, "4.1e+03 TiB")],
)
def test_readable(nbytes, text):
    assert readable(nbytes) == text
