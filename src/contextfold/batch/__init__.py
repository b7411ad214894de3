"""Conversations by the million: batches of rows in, batches of rows out.

    ray.data.read_json("s3://traces/").map_batches(CompactBatch, fn_constructor_kwargs={"window": 128_000}, ...)

``CompactBatch``, ``MeasureBatch`` and ``CheckBatch`` work on one batch at a time and do not know who calls them:
Ray Data, pandas, polars, Daft, a process pool. ``contextfold batch`` runs them over files and stores.

    operations  what becomes of one conversation, and the three classes
    tables      batches of every kind: rows out of them, columns added to them
    rows        the conversation that one row holds
    measures    the benchmark's figures for one conversation
    sources     files, folders, tables and stores as parts of work, and their conversations
    outputs     parts of the result, each written whole or not at all
    job         what is to be done, what is done already, what came of it
    pool        workers on this machine
    cluster     the same work on Ray

Nothing of Ray, pyarrow or fsspec is imported before it is needed (extra ``batch``).
"""

from contextfold.batch.operations import CheckBatch, CompactBatch, MeasureBatch

__all__ = ["CheckBatch", "CompactBatch", "MeasureBatch"]
