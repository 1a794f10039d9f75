import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep

import pytest

from ellipack.locks import ReaderWriterLock


def test_readers_share_the_lock_and_a_writer_excludes_all() -> None:
    lock, inside, most, wrong = ReaderWriterLock(), [0, 0], [0], []

    def look(_: int) -> None:
        for _ in range(200):
            with lock.read():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                wrong.extend([1] * inside[1])
                sleep(0)
                inside[0] -= 1

    def change(_: int) -> None:
        for _ in range(100):
            with lock.write():
                inside[1] += 1
                wrong.extend([1] * (inside[0] + inside[1] - 1))
                sleep(0)
                inside[1] -= 1

    with ThreadPoolExecutor(6) as pool:
        looking = [pool.submit(look, i) for i in range(4)]
        changing = [pool.submit(change, i) for i in range(2)]
        for done in looking + changing:
            done.result(timeout=60)
    assert not wrong
    assert inside == [0, 0]
    with lock.read(), lock.read():
        pass


def test_neither_readers_nor_writers_starve() -> None:
    lock, stop, turns = ReaderWriterLock(), Event(), [0, 0]

    def look() -> None:
        while not stop.is_set():
            with lock.read():
                turns[0] += 1

    def change() -> None:
        while not stop.is_set():
            with lock.write():
                turns[1] += 1

    with ThreadPoolExecutor(5) as pool:
        done = [pool.submit(look) for _ in range(3)] + [pool.submit(change) for _ in range(2)]
        for _ in range(1000):
            if min(turns) >= 100:
                break
            sleep(0.01)
        stop.set()
        for each in done:
            each.result(timeout=60)
    assert min(turns) >= 100


def test_an_error_releases_the_lock() -> None:
    lock = ReaderWriterLock()
    with pytest.raises(KeyError), lock.write():
        raise KeyError
    with pytest.raises(KeyError), lock.read():
        raise KeyError
    with lock.write():
        pass


def test_a_copied_lock_is_free() -> None:
    lock = ReaderWriterLock()
    with lock.write():
        twin = pickle.loads(pickle.dumps(lock))
    with twin.write():
        pass
