#!/usr/bin/env python3
"""VectorDBBench (PyPI's vectordb-bench, 2.0) with `gpuidx serve` as its database, full text and with filters.

    vectordbbench.py URL DOCUMENTS QUERIES [--filter-rate=X] [--concurrency=1,8] [--seconds=S] [-k N]

      URL        http://HOST:PORT/NAME of a server whose --writable names the collection; created by
                 gpuidx add --create NAME empty.tsv --attr=filter_id:int
      DOCUMENTS  TSV, an id and a text a line, which are inserted by the client; - leaves the collection as it is
      QUERIES    a query a line; a TSV's last column

The client class below is what VectorDBBench takes for a database: a task of its own, on MS MARCO, uses it once it is
put into vectordb_bench/backend/clients and named in its enumeration DB. Here its runners are run on the data given:
SerialSearchRunner's and MultiProcessingSearchRunner's figures are printed. The filter keeps documents whose filter_id,
the number of the line, is at least X of their number."""
import argparse
import contextlib
import http.client
import json
import os
import sys
import time
import urllib.parse

try:
    from vectordb_bench.backend.clients.api import DBCaseConfig, DBConfig, IndexType, MetricType, VectorDB
    from vectordb_bench.backend.filter import Filter, FilterOp, NewIntFilter, non_filter
    from vectordb_bench.backend.payload import PayloadProfile
    from vectordb_bench.backend.runner.mp_runner import MultiProcessingSearchRunner
    from vectordb_bench.backend.workload import WorkloadKind
    from pydantic import BaseModel
except ImportError as e:
    print('skipped: %s; pip install vectordb-bench' % e)
    sys.exit(77)


class GpuidxConfig(DBConfig):
    url: str = 'http://127.0.0.1:7700/passages'
    token: str = ''
    _extra_empty_skip = frozenset({'token'})

    def to_dict(self) -> dict:
        return {'url': self.url, 'token': self.token}


class GpuidxFtsConfig(BaseModel, DBCaseConfig):
    """BM25's parameters are those of the query, so that no index depends on them."""
    index: IndexType = IndexType.FTS
    metric_type: MetricType = MetricType.BM25
    bm25_k1: float | None = None
    bm25_b: float | None = None
    operator: str = 'or'

    def index_param(self) -> dict:
        return {}

    def search_param(self) -> dict:
        given = {'k1': self.bm25_k1, 'b': self.bm25_b, 'op': self.operator}
        return {name: value for name, value in given.items() if value is not None}


class Gpuidx(VectorDB):
    name = 'Gpuidx'
    supported_filter_types = [FilterOp.NonFilter, FilterOp.NumGE]
    thread_safe = False  # a connection each

    def __init__(self, dim: int, db_config: dict, db_case_config: GpuidxFtsConfig | None, collection_name: str = '',
                 drop_old: bool = False, **kwargs) -> None:
        url = urllib.parse.urlsplit(db_config['url'])
        self._host, self._index = url.netloc, collection_name or url.path.strip('/')
        self._headers = {'Content-Type': 'application/json'}
        if db_config.get('token'):
            self._headers['Authorization'] = 'Bearer ' + db_config['token']
        self._search = (db_case_config or GpuidxFtsConfig()).search_param()
        self._connection = None
        self._filter = None
        if drop_old and self._count():
            raise RuntimeError('%s holds documents; begin with an empty collection' % self._index)

    @classmethod
    def supports_full_text_search(cls) -> bool:
        return True

    def __getstate__(self) -> dict:
        return {**self.__dict__, '_connection': None}

    @contextlib.contextmanager
    def init(self):
        self._connection = http.client.HTTPConnection(self._host, timeout=60)
        try:
            yield
        finally:
            self._connection.close()
            self._connection = None

    def _ask(self, path: str, body: bytes, kind: str | None = None) -> dict:
        headers = {**self._headers, 'Content-Type': kind} if kind else self._headers
        self._connection.request('POST', path, body, headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RuntimeError('status %d: %s' % (answer.status, data[:500]))
        return json.loads(data)

    def _count(self) -> int:
        with self.init():
            return self._ask('/v1/%s/count' % self._index, b'{"query": ""}')['count']

    def prepare_filter(self, filters: Filter) -> None:
        if filters.type == FilterOp.NumGE:
            self._filter = 'filter_id:>=%d' % filters.int_value
        elif filters.type == FilterOp.NonFilter:
            self._filter = None
        else:
            raise ValueError('no such filter: %s' % filters)

    def insert_documents(self, texts: list[str], doc_ids: list[str], **kwargs) -> tuple[int, Exception | None]:
        numbers = kwargs.get('filter_ids') or [None] * len(texts)
        lines = []
        for text, name, number in zip(texts, doc_ids, numbers, strict=True):
            document = {'id': str(name), 'text': text}
            if number is not None:
                document['filter_id'] = int(number)
            lines.append(json.dumps({'put': document}))
        try:
            answer = self._ask('/v1/%s/docs' % self._index, '\n'.join(lines).encode(), 'application/x-ndjson')
        except Exception as e:
            return 0, e
        bad = answer['errors']
        return len(lines) - len(bad), RuntimeError(str(bad[0])) if bad else None

    def search_documents(self, query: str, k: int = 100, payload_profile: PayloadProfile = PayloadProfile.IDS_ONLY,
                         **kwargs) -> list[str]:
        body = {'query': query, 'k': k, **self._search}
        if self._filter:
            body['filter'] = self._filter
        return [h['id'] for h in self._ask('/v1/%s/search' % self._index, json.dumps(body).encode())['hits']]

    def optimize(self, data_size: int | None = None) -> None:
        """Until all that was inserted is found: within a second of its commit."""
        end = time.monotonic() + 60
        while data_size is not None and self._count() < data_size:
            if time.monotonic() > end:
                raise TimeoutError('%d documents are not there' % data_size)
            time.sleep(0.1)

    def insert_embeddings(self, *args, **kwargs):
        raise NotImplementedError('an index of words has no embeddings')

    def search_embedding(self, *args, **kwargs):
        raise NotImplementedError('an index of words has no embeddings')


def insert(db: Gpuidx, path: str) -> int:
    begin, n, batch = time.perf_counter(), 0, []
    with db.init(), open(path, encoding='utf-8', errors='replace') as f:
        for last, line in [(False, line) for line in f] + [(True, '')]:
            if line:
                name, _, text = line.rstrip('\n').partition('\t')
                batch.append((name, text, n + len(batch)))
            if batch and (last or len(batch) == 1000):
                done, e = db.insert_documents([b[1] for b in batch], [b[0] for b in batch],
                                              filter_ids=[b[2] for b in batch])
                if e:
                    raise e
                n, batch = n + done, []
    db.optimize(n)
    print('%d documents inserted in %.1f s' % (n, time.perf_counter() - begin))
    return n


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('url')
    p.add_argument('documents')
    p.add_argument('queries')
    p.add_argument('--filter-rate', type=float)
    p.add_argument('--concurrency', default='1,8')
    p.add_argument('--seconds', type=int, default=10)
    p.add_argument('-k', type=int, default=100)
    a = p.parse_args()
    db = Gpuidx(0, GpuidxConfig(url=a.url).to_dict(), GpuidxFtsConfig(), drop_old=a.documents != '-')
    n = insert(db, a.documents) if a.documents != '-' else db._count()
    with open(a.queries, encoding='utf-8', errors='replace') as f:
        queries = [line.rstrip('\n').split('\t')[-1] for line in f][:10000]
    filters = non_filter
    if a.filter_rate is not None:
        filters = NewIntFilter(filter_rate=a.filter_rate, int_field='filter_id', int_value=int(n * a.filter_rate))
        db.prepare_filter(filters)
        with db.init():  # what is found is what the filter keeps
            kept = {int(i) for q in queries[:20] for i in db.search_documents(q, a.k) if i.isdigit()}
        print('the filter leaves ids from %s on' % (min(kept) if kept else 'none'))
    runner = MultiProcessingSearchRunner(db, queries, a.k, filters, [int(c) for c in a.concurrency.split(',')],
                                         a.seconds, workload_kind=WorkloadKind.FULL_TEXT)
    print(runner.run())
    return 0


if __name__ == '__main__':
    sys.exit(main())
