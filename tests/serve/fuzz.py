#!/usr/bin/env python3
"""Requests that no client would send, to every route. The server must answer each, and not with 500, and live.

    GPUIDX=build/tools/gpuidx tests/serve/fuzz.py [SECONDS [SEED]]

The routes are those of /openapi.json. Bodies are good ones of each protocol, changed: members dropped, renamed, of
other types, nested; or bytes changed, cut and doubled. The seed is printed, and so are a request and its answer where
one is wrong. GPUIDX may be a build with sanitizers, whose reports fail the run."""
import http.client
import json
import os
import random
import sys
import time
import urllib.parse

from serving import FOLDER, Server, build, run

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 5
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(os.environ.get('GX_SEED', random.SystemRandom().randrange(2**32)))
R = random.Random(SEED)

BODIES = {
    '/v1/{index}/search': [
        {'query': 'inverted index', 'k': 3, 'offset': 1, 'op': 'or', 'scorer': 'bm25', 'k1': 0.9, 'b': 0.4,
         'count': True,
         'filter': 'year:>2003 AND NOT kind:odd', 'facets': ['kind'], 'snippets': {'marks': True}, 'explain': True,
         'fields': ['text'], 'timeout_ms': 1000},
        {'queries': ['terms', {'query': 'index', 'qid': '7'}], 'syntax': 'boolean'},
        {'vector': {'terms': 1.5, 'index': 0.25}, 'rm3': 'off'},
        {'query': 'terms', 'k': 2, 'cursor': True, 'sort': 'year:desc,kind', 'attributes': ['year'], 'sums': 'year'},
        {'query': 'terms', 'after': 'CURSOR', 'collapse': 'kind:2', 'attributes': 'all', 'quotes': 'words'},
        {'query': 'terms', 'prior': 'year:w=0.5,form=log', 'facets': ['kind/year', 'year:bins=3:exclude-own']},
        {'query': 'terms', 'collapse': 'kind:3', 'sort': 'year', 'explain': True}],
    '/v1/{index}/count': [{'query': 'terms', 'filter': 'year:2003'}],
    '/v1/{index}/doc/{id}': [{'title': 'T', 'text': 'new text', 'year': 3, 'kind': 'odd'}],
    '/v1/{index}/docs': [{'operations': [{'put': {'id': 'f1', 'text': 'x'}}, {'delete': 'f1'},
                                         {'update': {'id': 'f2', 'year': 1}}]}],
    '/retrieve': [{'queries': ['terms', 'index'], 'topk': 3, 'return_scores': True}],
    '/agents/{index}/search': [{'query': 'terms', 'offset': 1, 'limit': 3, 'filter': 'year:>1', 'window': True}],
    '/agents/{index}/read': [{'docid': 'd01', 'offset': 1, 'limit': 2}],
    '/v1/vector_stores/{index}/search': [
        {'query': ['terms'], 'max_num_results': 3, 'ranking_options': {'score_threshold': 0.1, 'ranker': 'auto'},
         'filters': {'type': 'and', 'filters': [{'type': 'gt', 'key': 'year', 'value': 2001},
                                                {'type': 'in', 'key': 'kind', 'value': ['odd', 'even']}]}}],
    '/mcp': [{'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call',
              'params': {'name': 'search',
                         'arguments': {'query': 'terms', 'k': 3, 'max_chars': 500, 'filter': 'year:>1'}}},
             {'jsonrpc': '2.0', 'id': 'x', 'method': 'tools/call',
              'params': {'name': 'fetch', 'arguments': {'id': 'd01', 'offset': 2, 'max_chars': 300}}},
             {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list', 'params': {}}],
    '/{index}/_search': [
        {'query': {'bool': {'must': [{'match': {'text': {'query': 'all terms', 'operator': 'and'}}}],
                            'should': [{'match': {'title': 'index'}}], 'must_not': {'term': {'kind': 'odd'}},
                            'filter': [{'range': {'year': {'gte': 2001, 'lt': 2009}}}, {'exists': {'field': 'year'}}]}},
         'from': 0, 'size': 5, '_source': ['title', 'year'], 'highlight': {'fields': {'text': {}}},
         'aggs': {'a': {'terms': {'field': 'kind', 'size': 3}}}},
        {'query': {'query_string': {'query': '+terms -more kind:odd'}}}, {'query': {'ids': {'values': ['d01', 'x']}}},
        {'query': {'multi_match': {'query': 'terms', 'fields': ['text']}}},
        {'query': {'match': {'text': 'terms'}}, 'sort': [{'year': 'desc'}], 'search_after': [1, 'CURSOR'],
         'collapse': {'field': 'kind', 'inner_hits': {'name': 'n', 'size': 2}}, 'explain': True, 'version': True,
         'fields': ['year', {'field': 'kind'}], 'post_filter': {'term': {'kind': 'odd'}}},
        {'query': {'match_all': {}}, 'sort': ['_doc'], 'size': 2, 'aggs': {
            'r': {'range': {'field': 'year', 'ranges': [{'to': 2003}, {'from': 2003, 'key': 'k'}], 'keyed': True},
                  'aggs': {'m': {'stats': {'field': 'year'}}, 't': {'terms': {'field': 'kind'}}}},
            'f': {'filters': {'filters': {'a': {'term': {'kind': 'odd'}}, 'b': {'match_all': {}}}}},
            'h': {'histogram': {'field': 'year', 'interval': 3}, 'aggs': {'p': {'percentiles': {'field': 'year'}},
                                                                         'c': {'cardinality': {'field': 'kind'}}}}}}],
    '/{index}/_count': [{'query': {'match_all': {}}}],
    '/{index}/_mget': [{'docs': [{'_id': 'd01', '_source': False}]}, {'ids': ['d02', 'x']}],
    '/{index}/_doc/{id}': [{'text': 'by id', 'year': 4}], '/{index}/_create/{id}': [{'text': 'once'}],
    '/{index}/_doc': [{'text': 'without'}], '/{index}/_update/{id}': [{'doc': {'year': 4}, 'doc_as_upsert': True}],
    '/{index}/_bulk': [[{'index': {'_id': 'b1'}}, {'text': 'b'}, {'update': {'_id': 'b1'}}, {'doc': {'year': 2}},
                        {'delete': {'_id': 'b1'}}]],
    '/{index}/_msearch': [[{}, {'query': {'match': {'text': 'terms'}}}, {'index': 'c'}, {'size': 1}]],
}
ODD = [None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 1e308, -0.5, '', ' ', 'x', '*', '"',
       '\\', '\u00fc' * 40, 'a b ' * 99,
       'kind:odd', 'NOT', '(', 'year:[', [], {}, [[]], {'x': 1}, ['x'] * 5, {'query': 'x'}, '<script>', '\u202e',
       '\x01']
ARGUMENTS = ['refresh', 'format', 'tag', 'query', 'hits', 'parse', 'q', 'size', 'from', '_source', 'pretty', 'timeout',
             'op_type', 'filter', 'v', 'h', 'x', 'default_operator', 'track_total_hits']


CURSOR = ['x']


def change(value, depth=0):
    """The value with one thing in it made odd."""
    if depth > 8 or R.random() < 0.15 or not isinstance(value, (dict, list)) or not value:
        return R.choice(ODD) if R.random() < 0.8 else {'a': value}
    if isinstance(value, list):
        out = list(value)
        i = R.randrange(len(out))
        what = R.random()
        if what < 0.15:
            del out[i]
        elif what < 0.3:
            out *= R.randrange(2, 40)
        else:
            out[i] = change(out[i], depth + 1)
        return out
    out = dict(value)
    name = R.choice(list(out))
    what = R.random()
    if what < 0.15:
        del out[name]
    elif what < 0.3:
        out[R.choice(['x', 'query', 'k', 'filter', 'bool', 'a' * 300, '', '\u00e9', 'size'])] = out.pop(name)
    else:
        out[name] = change(out[name], depth + 1)
    return out


def change_bytes(b):
    b = bytearray(b)
    for _ in range(R.randrange(1, 6)):
        if not b:
            break
        i = R.randrange(len(b))
        what = R.random()
        if what < 0.5:
            b[i] = R.randrange(256)
        elif what < 0.7:
            del b[i:i + R.randrange(1, 20)]
        elif what < 0.9:
            b[i:i] = b[max(0, i - R.randrange(1, 30)):i]
        else:
            b[i:i] = b'[' * R.choice([1, 10, 200])
    return bytes(b)


def with_cursor(value):
    """The value, in which a cursor that the server has given stands for CURSOR."""
    if isinstance(value, dict):
        return {k: with_cursor(v) for k, v in value.items()}
    if isinstance(value, list):
        return [with_cursor(v) for v in value]
    return CURSOR[0] if value == 'CURSOR' else value


def body_of(path):
    value = R.choice(BODIES.get(path) or BODIES.get(path.replace('/_', '/{index}/_', 1))
                     or BODIES.get(path.replace('/{index}', '')) or [None])
    if value is None:
        return None
    for _ in range(R.choice([0, 1, 1, 2, 4])):
        value = change(value)
    value = with_cursor(value)
    lines = isinstance(value, list) and path.endswith(('_bulk', '_msearch'))
    b = (''.join(json.dumps(v) + '\n' for v in value) if lines else json.dumps(value)).encode('utf-8', 'replace')
    return change_bytes(b) if R.random() < 0.3 else b


def path_of(form):
    ids = ['d01', 'none', 'a/b', '..', '\x00', '\u00fc', 'x' * 3000, '%', ' ', '"', '<b>']
    index = R.choice(['c'] * 8 + ['f', 'none', '_x', '..', '', 'c,f', 'c*'])
    path = form.replace('{index}', urllib.parse.quote(index, safe='*,'))
    path = path.replace('{id}', urllib.parse.quote(R.choice(ids), safe=''))
    n = R.choice([0, 0, 0, 1, 2, 5])
    pairs = [(R.choice(ARGUMENTS),
              str(R.choice(ODD + ['true', 'wait_for', 'false', '10', 'trec', 'json']))) for _ in range(n)]
    return path + ('?' + urllib.parse.urlencode(pairs, errors='replace') if pairs else '')


def main():
    print('seed %d, %g s' % (SEED, SECONDS), flush=True)
    path, folder = build('fuzzed'), os.path.join(FOLDER, 'fuzzed')
    run('collect', path, '-o', folder)
    s = Server('c=' + folder, 'f=' + path, '--writable=c', '--engine=cpu', '--threads=2', '--commit-every=0',
               '--max-k=1000', '--timeout=20000')
    routes = [(m.upper(), p) for p, methods in s.get('/openapi.json').json['paths'].items() for m in methods]
    types = ['application/json'] * 6 + ['application/x-ndjson'] * 3 + ['text/plain', '',
                                                                       'application/vnd.elasticsearch+json']
    before = s.post('/v1/f/search', {'query': 'terms'}).json['hits']
    CURSOR[0] = s.post('/v1/c/search', {'query': 'terms', 'k': 2, 'cursor': True}).json['cursor']
    counts, n, bad, end = {}, 0, 0, time.monotonic() + SECONDS
    c = s.connect()
    while time.monotonic() < end and bad < 5 and s.process.poll() is None:
        method, form = R.choice(routes)
        if R.random() < 0.02:
            method = R.choice(['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS', 'BREW'])
        target, body, kind = path_of(form), body_of(form), R.choice(types)
        try:
            c.request(method, target, body, {'Content-Type': kind, 'Connection': 'keep-alive'})
            r = c.getresponse()
            answer = r.read()
            status = r.status
        except (http.client.HTTPException, OSError) as e:
            c.close()
            c = s.connect()
            status, answer = type(e).__name__, b''
        n += 1
        counts[status] = counts.get(status, 0) + 1
        wrong = status == 500 or not isinstance(status, int)
        if status in [400, 404, 409] and method != 'HEAD':
            try:
                wrong = not isinstance(json.loads(answer), dict)
            except ValueError:
                wrong = b'<html>' not in answer  # libmicrohttpd's own, of what is no HTTP
        if wrong:
            bad += 1
            print('WRONG: %s %s %s %r\n  -> %s %r' % (method, target[:300], kind, body, status, answer[:500]),
                  flush=True)
    alive = s.process.poll() is None and s.get('/health/livez').status == 200
    same = alive and s.post('/v1/f/search', {'query': 'terms'}).json['hits'] == before
    code = s.stop()
    print('%d requests: %s' % (n, ', '.join('%s %d' % (k, v) for k, v in sorted(counts.items(), key=str))))
    reports = [w for w in s.words if 'ERROR: ' in w or 'runtime error' in w or 'SUMMARY' in w]
    print(''.join(reports[:20]), end='')
    good = not bad and alive and code == 0 and same and not reports
    print('good' if good else 'FAILED: bad %d, alive %s, code %s, same answers %s' % (bad, alive, code, same))
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
