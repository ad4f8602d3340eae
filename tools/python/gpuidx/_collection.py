"""Collections: several index files as one index, to which documents are added and from which they are deleted."""
from __future__ import annotations

import math
import os
import tempfile
import threading
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _build
from ._index import _CHECKS, Index, _choose
from ._library import (UINT64_MAX, InputError, Interrupt, UsageError, absolute, check, encode, ffi, lib, new_error,
                       options, path_bytes, whole)


class CollectionCounts(NamedTuple):
    """What a Collection has done since it was opened. added, deleted: documents, an update counts in both;
    merged_documents: those that merges have written."""

    added: int
    deleted: int
    commits: int
    merges: int
    merged_documents: int


class Collection:
    """The one writer of a collection, which is a folder of index files. It holds a lock until it is closed.

    path     the folder, which Collection.create makes
    memory   bytes for the inversion of what is added; 0: 512 MiB
    threads  that work for a build, the caller's included
    check    how much of the files is verified: "structure", "checksum" or "full"
    wait     seconds to wait while another process has the lock, or True: until it has not; False: StorageError then

    Readers open the folder as they open a file, gpuidx.open(path), see the last commit, and stay with it until
    Index.reopen. Changes are seen by nobody until commit returns; then they are on disk. A with-block commits at its
    end, and drops what was not committed where it raises. close drops it as well, and so does a process that dies.

    Threads take turns. After an exception of the library other than InputError the collection is closed, and has its
    last commit: StorageError, say, where another folder has come in the place of the one that was opened. A forked
    child must open its own.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, memory: int = 0, threads: int = 1,
                 check: str = "structure", wait: Union[bool, float] = False) -> None:
        self._collection = ffi.NULL
        self.path = os.fsdecode(path)
        self._place = absolute(self.path)
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._interrupt = Interrupt()
        out, err, opt = ffi.new("gx_collection **"), new_error(), options("gx_collection_options")
        opt.memory, opt.threads = whole(memory, "memory", 0, UINT64_MAX), whole(threads, "threads")
        opt.cancel = self._interrupt.cancel
        opt.check = _choose(_CHECKS, "check", check)
        opt.wait = math.inf if wait is True else float(wait)
        self._interrupt.check(lib.gx_collection_open(out, path_bytes(path), opt, err), err)
        self._collection = out[0]

    @classmethod
    def create(cls, path: Union[str, "os.PathLike[str]"], indexes: Iterable[Union[str, "os.PathLike[str]", Index]] = (),
               *, memory: int = 0, threads: int = 1, **build_arguments: Any) -> "Collection":
        """Make a collection of index files (paths, or each an Index), and open it. The files get a second name in the
        folder. Of one collection's path it makes a copy of the last commit, also while others change that one. Without
        files it is empty, and build_arguments (analyzer, store_text, attributes, ...) say how it will index documents;
        vectors="vector" and a unit are of one of vectors.
        ExistsError where the folder exists; UsageError: the files differ in their analyzer, say."""
        files = [i.path if isinstance(i, Index) else i for i in indexes]
        if files and build_arguments:
            raise UsageError("%s: of an empty collection alone; the files say it" % ", ".join(build_arguments))
        if files:
            _collect(path, files)
        else:
            place = os.path.dirname(os.path.abspath(os.fsdecode(path)))
            with tempfile.TemporaryDirectory(prefix=".gpuidx-", dir=place) as folder:
                empty = os.path.join(folder, "empty.gx")
                _build.build(empty, (), **build_arguments).close()
                _collect(path, [empty])
        return cls(path, memory=memory, threads=threads)

    def close(self) -> None:
        """Drop what has not been committed, and let go of the lock."""
        with self._lock:
            if self._collection != ffi.NULL and self._pid == os.getpid():
                lib.gx_collection_close(self._collection)
            self._collection = ffi.NULL

    def __enter__(self) -> "Collection":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            if kind is None and self._collection != ffi.NULL:
                self.commit()
        finally:
            self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass

    def __repr__(self) -> str:
        if self._collection == ffi.NULL or self._pid != os.getpid():
            return "<gpuidx.Collection %r: closed>" % self.path
        return "<gpuidx.Collection %r: %s documents in the last commit>" % (self.path, format(len(self), ","))

    def __reduce__(self) -> Any:
        raise TypeError("a Collection cannot be pickled: it is the one writer; open the path as an Index")

    def _open(self) -> Any:
        if self._collection == ffi.NULL:
            raise ValueError("the collection %s is closed" % self.path)
        if self._pid != os.getpid():
            raise ValueError("the collection %s was opened by the process that forked this one" % self.path)
        return self._collection

    def _result(self, status: int, err: Any) -> None:
        """As check; but after failures other than InputError the library wants the collection closed."""
        try:
            self._interrupt.check(status, err)
        except InputError:
            raise
        except BaseException:
            if status != lib.GX_ECANCELLED:
                self.close()
            raise

    def __len__(self) -> int:
        """The number of documents in the last commit."""
        with self._lock:
            return int(lib.gx_index_n_docs(lib.gx_collection_index(self._open())))

    @property
    def counts(self) -> CollectionCounts:
        """What was done since it was opened, what is not committed included."""
        counts = ffi.new("gx_collection_counts *")
        counts.size = ffi.sizeof("gx_collection_counts")
        with self._lock:
            _check(lib.gx_collection_get_counts(self._open(), counts), new_error())
        return CollectionCounts(*(int(getattr(counts, name)) for name in CollectionCounts._fields))

    def add(self, documents: Any) -> int:
        """Add one document, a dict, or many, in any of the forms that gpuidx.build takes, behind all others; returns
        their number. Values of attributes are under their names. In a collection of vectors each has {term: weight}
        under "vector", and the weights become multiples of IndexInfo.impact_unit. InputError: a live document has that
        id; InputError, TypeError or ValueError: a document is malformed. Then, and where the iterator raises, the
        documents before are added, the others are not, and the collection stays open."""
        return self._change(documents, lambda document, err: lib.gx_collection_add(self._collection, document, err))

    def update(self, documents: Any) -> int:
        """Add documents as add does, each in place of the one with its id, if there is one; returns how many there
        were."""
        replaced, found = 0, ffi.new("bool *")

        def update(document: Any, err: Any) -> Any:
            nonlocal replaced
            status = lib.gx_collection_update(self._collection, document, found, err)
            replaced += bool(found[0]) and status == 0
            return status

        self._change(documents, update)
        return replaced

    def _change(self, documents: Any, change: Any) -> int:
        if isinstance(documents, Mapping) and any(name in documents for name in _build.IDS):
            documents = [documents]  # one document, and not {id: text}
        n, recent = 0, []  # type: int, List[Any]

        def recorded(all_documents: Iterable[Any]) -> Iterator[Any]:
            for document in all_documents:
                recent.append(document)
                yield document

        with self._lock:
            self._open()
            names, key = self._attributes(), self._vector_key()
            made = _build.batches(recorded(_build.listed(documents)), names, key, None)
            while True:
                try:
                    batch = next(made, None)
                except BaseException:  # of the iterator, or of a document of the batch that was begun
                    self._change_before(recent, names, key, change)
                    raise
                if batch is None:
                    return n
                recent.clear()
                n += self._change_batch(batch, change)

    def _change_batch(self, batch: Any, change: Any) -> int:
        err = new_error()
        for i in range(batch.n):
            self._open()
            self._result(change(batch.pointer + i, err), err)
        return int(batch.n)

    def _change_before(self, documents: Sequence[Any], names: Sequence[str], key: Optional[str],
                       change: Any) -> None:
        """The documents before the first that cannot be taken, if there is one, one by one."""
        for document in documents:
            try:
                batches = list(_build.batches([document], names, key, None))
            except Exception:
                return
            for batch in batches:
                self._change_batch(batch, change)

    def _vector_key(self) -> Optional[str]:
        """Where the documents of a collection of vectors have theirs."""
        stats = ffi.new("gx_index_stats *")
        stats.size = ffi.sizeof("gx_index_stats")
        _check(lib.gx_index_get_stats(lib.gx_collection_index(self._collection), stats), new_error())
        return "vector" if stats.impacts else None

    def _attributes(self) -> Sequence[str]:
        index, info = lib.gx_collection_index(self._collection), ffi.new("gx_attribute_info *")
        info.size = ffi.sizeof("gx_attribute_info")
        names = []
        for i in range(lib.gx_index_n_attributes(index)):
            lib.gx_index_get_attribute(index, i, info)
            names.append(bytes(ffi.buffer(info.name, info.name_len)).decode())
        return names

    def delete(self, docnos: Union[str, Iterable[str]]) -> int:
        """Delete the documents of these ids, or of this one; returns how many there were."""
        n, found, err = 0, ffi.new("bool *"), new_error()
        with self._lock:
            self._open()
            for docno in [docnos] if isinstance(docnos, str) else docnos:
                coded = encode(docno, "a docno")
                self._result(lib.gx_collection_delete(self._open(), coded, len(coded), found, err), err)
                n += bool(found[0])
        return n

    def commit(self) -> None:
        """Make what was added and deleted since the last commit the next one; without changes nothing happens."""
        err = new_error()
        with self._lock:
            self._result(lib.gx_collection_commit(self._open(), err), err)

    def merge(self, all: bool = False) -> None:
        """Commit, then merge files: 4 neighbours of about one size into one, and those of which more than a third is
        deleted are written anew; or all into one file. Answers stay the same. Ctrl-C stops it, and the collection
        stays open."""
        err, policy = new_error(), lib.GX_MERGE_ALL if all else lib.GX_MERGE_TIERS
        with self._lock:
            self._result(lib.gx_collection_merge(self._open(), policy, err), err)

    def index(self, **arguments: Any) -> Index:
        """The last commit as an Index, to search it; the arguments are those of Index."""
        return Index(self._place, **arguments)


_check = check


def _collect(path: Union[str, "os.PathLike[str]"], files: Sequence[Any]) -> None:
    keep: Dict[int, Any] = {i: ffi.new("char[]", path_bytes(f)) for i, f in enumerate(files)}
    err = new_error()
    check(lib.gx_collect(path_bytes(path), ffi.new("char *[]", list(keep.values())), len(keep), err), err)


__all__ = ["Collection", "CollectionCounts"]
