"""gpuidx: exact BM25 search on the GPU or the CPU.

    import gpuidx
    index = gpuidx.build("wiki.gx", [{"id": "1", "text": "an inverted index"}])
    for hit in index.search("inverted"):
        print(hit.docno, hit.score)
"""
from ._build import build
from ._collection import Collection, CollectionCounts
from ._fuse import fuse
from ._index import Index, IndexInfo, Mask, Part, Postings, Token, import_ciff
from ._library import (Cancelled, CorruptError, CUDAError, DeadlineError, Error, ExistsError, InputError, InternalError,
                       NoGPUError, NotFoundError, OutOfMemoryError, StorageError, UsageError, version)
from ._results import Facet, Group, Hit, Results
from ._words import Expansion, Synonyms, Word

__version__ = version()
open = Index.open

__all__ = ["Index", "IndexInfo", "Mask", "Part", "Postings", "Token", "Hit", "Group", "Results", "Facet", "Collection",
           "CollectionCounts", "Expansion", "Synonyms", "Word", "fuse", "build", "open", "import_ciff", "Error",
           "UsageError", "InputError", "CorruptError", "ExistsError", "NotFoundError", "OutOfMemoryError", "NoGPUError",
           "StorageError", "CUDAError", "Cancelled", "DeadlineError", "InternalError", "version"]
