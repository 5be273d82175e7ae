"""Two processes that send each other arrays; each prints its rank if they arrived."""

import os

import numpy as np

from fathomer import spool
from fathomer.train.processes import join_processes

ARRAYS = [
    np.arange(12, dtype=np.int32).reshape(3, 4),
    np.zeros(0, dtype=np.int64),
    np.array(2.5, dtype=np.float32),
    np.arange(3 * spool.PIECE // 8 + 5),  # several pieces
]

if __name__ == "__main__":
    spool.LIMIT = spool.PIECE  # the last array goes to disk
    with join_processes(2, device="cpu", module="tests.train.pair") as group:
        group.connect()
        for array in ARRAYS:
            received = group.array(None if group.rank else array)
            assert received.dtype == array.dtype
            assert received.shape == array.shape
            assert np.array_equal(received, array)
        assert group.decide(lambda: {"labels": ["ä", None]}) == {"labels": ["ä", None]}
        os.write(1, f"{group.rank}\n".encode())  # in one piece: both write to the same pipe
        group.decide(lambda: None)
        if not group.rank:
            group.children[0].wait()
