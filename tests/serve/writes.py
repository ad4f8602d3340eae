#!/usr/bin/env python3
"""Writes: what clients write is what a build of the same documents answers, durable when it is acknowledged."""
import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest

from serving import DOCUMENTS, FOLDER, GPUIDX, Server, build, main, query, run

NUMBERS = iter(range(10**6))
FLAGS = ['--store=text', '--attr=year:int', '--attr=kind:keyword', '--attr=tenant:keyword', '--attr=tags:keywords',
         '--attr=score:float', '--attr=when:date', '--attr=open:bool']


def write_file(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


def collection(documents=DOCUMENTS):
    n = next(NUMBERS)
    path = os.path.join(FOLDER, 'collection%d' % n)
    corpus = write_file('documents%d.jsonl' % n, ''.join(json.dumps(d) + '\n' for d in documents))
    run('add', '-q', '--create', path, corpus, *FLAGS)
    return path


class Writes(unittest.TestCase):
    def serve(self, *arguments, **more):
        s = Server(*arguments, '--engine=cpu', '--threads=2', **more)
        self.addCleanup(lambda: s.process.poll() is None and s.stop())
        return s

    def open(self, *flags, documents=DOCUMENTS):
        self.path = collection(documents)
        return self.serve('c=' + self.path, '--writable=c', *flags)

    def test_a_document_by_our_own_routes(self):
        s = self.open()
        doc = {'title': 'New', 'text': 'zebra crossing', 'year': 1999, 'tags': ['x', 'y'], 'score': 1.5,
               'when': '2020-02-03', 'open': True, 'kind': None}
        a = s.ask('PUT', '/v1/c/doc/n1?refresh=true', doc)
        self.assertEqual((a.status, a.json['result']), (201, 'created'))
        commit = a.json['commit']
        hits = s.post('/v1/c/search', {'query': 'zebra'}).json['hits']
        self.assertEqual([h['id'] for h in hits], ['n1'])
        for f in ['year:1999', 'tags:x AND tags:y', 'score:1.5', 'when:2020-02-03', 'open:true', 'NOT has:kind']:
            found = s.post('/v1/c/search', {'query': 'zebra', 'filter': f})
            self.assertEqual(len(found.json['hits']), 1, f)
        a = s.ask('PUT', '/v1/c/doc/n1?refresh=wait_for', {'text': 'yak'})
        self.assertEqual((a.status, a.json['result'], a.json['commit']), (200, 'replaced', commit + 1))
        self.assertEqual(s.get('/c/_source/n1').json, {'text': 'yak'})
        a = s.ask('PATCH', '/v1/c/doc/n1?refresh=true', {'year': 7, 'tags': 'one'})
        self.assertEqual((a.status, a.json['result']), (200, 'replaced'))
        self.assertEqual(s.get('/c/_source/n1').json, {'text': 'yak', 'year': 7, 'tags': ['one']})
        self.assertEqual(s.ask('DELETE', '/v1/c/doc/n1?refresh=true').json['result'], 'deleted')
        self.assertEqual(s.ask('DELETE', '/v1/c/doc/n1').status, 404)
        self.assertEqual(s.ask('PATCH', '/v1/c/doc/n1', {'text': 'x'}).status, 404)
        self.assertEqual(s.get('/v1/c/doc/n1').status, 404)

    def test_faults_have_their_place(self):
        s = self.open()
        for body, status, member, words in [
                ('{"text": 3}', 400, 'text', 'not a string'), ('{"text": "x", "nope": 1}', 400, 'nope', 'nope'),
                ('{"year": {"a": 1}}', 400, 'year', 'object'), ('{"year": "x"}', 400, None, 'year'),
                ('{"year": [1, [2]]}', 400, 'year[1]', 'array'), ('{"text": "a", "contents": "b"}', 400, 'contents',
                                                                  'twice'),
                ('{"id": "other"}', 400, 'id', 'not the id'), ('["x"]', 400, None, 'object'), ('{', 400, None, 'JSON'),
                ('', 400, None, 'empty'), ('{"kind": ["a", "b"]}', 400, None, 'kind')]:
            for path in ['/v1/c/doc/q', '/c/_doc/q']:
                a = s.ask('PUT', path, body)
                self.assertEqual(a.status, status, body)
                self.assertIn(words, a.body.decode())
                if member and path.startswith('/v1'):
                    self.assertEqual(a.json['error']['member'], member)
                    self.assertEqual(a.json['error']['line'], 1)
        self.assertEqual(s.ask('PUT', '/v1/c/doc/a%20b', {'text': 'x'}).status, 400)
        self.assertEqual(s.ask('PUT', '/v1/c/doc/x?refresh=maybe', {'text': 'x'}).status, 400)
        self.assertEqual(s.ask('PUT', '/v1/c/doc/x?sync=1', {'text': 'x'}).status, 400)
        self.assertEqual(s.ask('PUT', '/v1/nowhere/doc/x', {'text': 'x'}).status, 404)
        self.assertEqual(s.get('/v1/c').json['documents'], len(DOCUMENTS))

    def test_many_operations_fail_one_by_one(self):
        s = self.open()
        ops = [{'add': {'id': 'd00', 'text': 'x'}}, {'add': {'id': 'e1', 'text': 'gnu'}}, {'delete': 'd01'},
               {'delete': 'none'}, {'put': {'id': 'd02', 'text': 'gnu gnu'}}, {'update': {'id': 'none', 'text': 'x'}},
               {'update': {'id': 'e1', 'year': 5}}, {'put': {'text': 'no id'}}, {'put': {'id': 'e2', 'year': 'x'}},
               {'nope': 1}, 7, {'put': {'id': 'e3'}, 'add': {'id': 'e4'}}, {'delete': 3}]
        want = {'created': 1, 'deleted': 1, 'absent': 2, 'replaced': 2, 'failed': 7}
        bodies = [({'operations': ops}, 'application/json'),
                  (''.join(json.dumps(o) + '\n' for o in ops) + '{bad\n', 'application/x-ndjson')]
        for body, kind in bodies:
            s = self.open()
            a = s.post('/v1/c/docs?refresh=true', body, headers={'Content-Type': kind})
            self.assertEqual(a.status, 200, a.body)
            got = a.json
            lines = kind != 'application/json'
            self.assertEqual({k: got[k] for k in want}, {**want, 'failed': 7 + lines})
            self.assertEqual([e['operation'] for e in got['errors']], [0, 7, 8, 9, 10, 11, 12] + [13] * lines)
            self.assertEqual([e['status'] for e in got['errors']], [409] + [400] * (6 + lines))
            if lines:
                self.assertEqual([e['line'] for e in got['errors']], [1, 8, 9, 10, 11, 12, 13, 14])
            else:
                self.assertEqual(got['errors'][1]['member'], 'operations[7].put')
            hits = s.post('/v1/c/search', {'query': 'gnu', 'filter': 'year:5'}).json['hits']
            self.assertEqual([h['id'] for h in hits], ['e1'])
        for body in [{}, {'operations': []}, {'operations': {}}, {'docs': []}]:
            self.assertEqual(s.post('/v1/c/docs', body).status, 400)
        self.assertEqual(s.post('/v1/c/docs', '\n\n', headers={'Content-Type': 'application/x-ndjson'}).status, 400)

    def bulk(self, s, lines, path='/_bulk', status=200, method='POST'):
        body = ''.join((x if isinstance(x, str) else json.dumps(x)) + '\n' for x in lines)
        a = s.ask(method, path, body, {'Content-Type': 'application/x-ndjson'})
        self.assertEqual(a.status, status, a.body)
        self.assertEqual(a.headers['X-Elastic-Product'], 'Elasticsearch')
        return a.json

    def test_bulk(self):
        s = self.open()
        a = self.bulk(s, [{'index': {'_index': 'c', '_id': 'n1'}}, {'text': 'ibex one', 'year': 1},
                          {'create': {'_index': 'c', '_id': 'd00'}}, {'text': 'x'},
                          {'create': {'_id': 'n2'}}, {'text': 'ibex two'},
                          {'update': {'_id': 'n1'}}, {'doc': {'year': 2}},
                          {'update': {'_id': 'zz'}}, {'doc': {'year': 2}},
                          {'update': {'_id': 'n3'}}, {'doc': {'text': 'ibex three'}, 'doc_as_upsert': True},
                          {'delete': {'_id': 'd03'}}, {'delete': {'_id': 'zz'}},
                          {'index': {}}, {'text': 'ibex four'},
                          {'index': {'_id': 'bad'}}, {'nope': 1},
                          {'index': {'_id': 'bad'}}, '{"text": ',
                          {'update': {'_id': 'n1'}}, {'script': 'x'}], '/_bulk?refresh=true')
        self.assertTrue(a['errors'])
        got = [(k, v['status'], v.get('result') or v['error']['type']) for i in a['items'] for k, v in i.items()]
        self.assertEqual(got, [('index', 201, 'created'), ('create', 409, 'version_conflict_engine_exception'),
                               ('create', 201, 'created'), ('update', 200, 'updated'),
                               ('update', 404, 'document_missing_exception'), ('update', 201, 'created'),
                               ('delete', 200, 'deleted'), ('delete', 404, 'not_found'), ('index', 201, 'created'),
                               ('index', 400, 'document_parsing_exception'),
                               ('index', 400, 'document_parsing_exception'),
                               ('update', 400, 'document_parsing_exception')])
        self.assertRegex(a['items'][9]['index']['error']['reason'], r'^\[18:10\] nope: ')
        self.assertRegex(a['items'][10]['index']['error']['reason'], r'^\[20:')
        self.assertIn("'script'", a['items'][11]['update']['error']['reason'])
        self.assertEqual(len(a['items'][8]['index']['_id']), 20)
        hits = s.post('/c/_search', {'query': {'match': {'text': 'ibex'}}}).json['hits']['hits']
        self.assertEqual({h['_id'] for h in hits}, {'n1', 'n2', 'n3', a['items'][8]['index']['_id']})
        self.assertEqual(s.get('/c/_source/n1').json, {'text': 'ibex one', 'year': 2})
        self.assertEqual(s.get('/c/_source/n1?', ).status, 200)
        self.assertEqual(s.get('/c/_doc/n1?_source=year').json['_source'], {'year': 2})
        self.assertFalse(self.bulk(s, [{'delete': {'_id': 'zz'}}], '/c/_bulk', method='PUT')['errors'])
        for lines, words in [([{'index': {'_index': 'other'}}, {}], 'one index'), ([{'fly': {}}, {}], 'fly'),
                             (['{'], 'JSON'),
                             ([{'index': {'_id': 'x'}}], 'missing'), ([{'delete': {}}], '_id'), ([], 'empty'),
                             ([{'index': {'pipeline': 'p'}}, {}], 'pipeline'), ([{'index': {}, 'delete': {}}],
                                                                                'one of'),
                             (['', ''], 'empty')]:
            for path in ['/c/_bulk', '/_bulk']:
                if path == '/c/_bulk' or words in ['JSON', 'fly', 'empty', 'pipeline', 'one of']:
                    self.assertIn(words, json.dumps(self.bulk(s, lines, path, 400)), lines)
        self.assertIn('_index', json.dumps(self.bulk(s, [{'index': {}}, {}], '/_bulk', 400)))

    def test_single_documents_as_elasticsearch_has_them(self):
        s = self.open()
        a = s.post('/c/_doc', {'text': 'okapi'})
        self.assertEqual((a.status, a.json['result']), (201, 'created'))
        a = s.ask('PUT', '/c/_doc/o1?refresh=wait_for', {'text': 'okapi', 'id': 'o1'})
        self.assertEqual((a.status, a.json['result']), (201, 'created'))
        self.assertEqual(s.ask('PUT', '/c/_create/o1', {'text': 'x'}).status, 409)
        self.assertEqual(s.ask('PUT', '/c/_doc/o1?op_type=create', {'text': 'x'}).status, 409)
        self.assertEqual(s.ask('PUT', '/c/_doc/o1?op_type=fly', {'text': 'x'}).status, 400)
        self.assertEqual(s.post('/c/_create/o2', {'text': 'okapi'}).status, 201)
        self.assertEqual(s.post('/c/_update/o2', {'doc': {'year': 3}}).json['result'], 'updated')
        self.assertEqual(s.post('/c/_update/o9', {'doc': {'year': 3}}).status, 404)
        self.assertEqual(s.post('/c/_update/o9', {'doc': {'year': 3}, 'doc_as_upsert': True}).status, 201)
        self.assertEqual(s.post('/c/_update/o9', {'script': {}}).status, 400)
        self.assertEqual(s.post('/c/_update/o9', {}).status, 400)
        self.assertEqual(s.ask('DELETE', '/c/_doc/o9').json['result'], 'deleted')
        a = s.ask('DELETE', '/c/_doc/o9')
        self.assertEqual((a.status, a.json['result']), (404, 'not_found'))
        self.assertEqual(s.post('/c/_refresh', None).status, 200)
        self.assertEqual(s.post('/c/_count', {'query': {'match': {'text': 'okapi'}}}).json['count'], 3)
        self.assertEqual(s.ask('PUT', '/c/_search', {}).headers['Allow'], 'POST, GET')

    def test_random_writes_equal_a_build(self):
        """The witness is a dictionary; the index must answer as one built of its documents in their order."""
        seed = int(os.environ.get('GX_SEED', '7'))
        r = random.Random(seed)
        s = self.open('--commit-every=5')
        model = {d['id']: d for d in DOCUMENTS}
        words = 'alpha beta gamma delta epsilon zeta eta theta'.split()
        for _ in range(60):
            ops, lines = [], []
            for _ in range(r.randrange(1, 9)):
                i = 'd%02d' % r.randrange(25)
                d = {'text': ' '.join(r.choices(words, k=r.randrange(1, 9))), 'year': r.randrange(9)}
                if r.random() < 0.5:
                    d['title'] = r.choice(words)
                if r.random() < 0.5:
                    d['tags'] = r.sample(words, r.randrange(1, 3))
                what = r.choice(['put', 'add', 'update', 'delete'])
                if what == 'put' or (what == 'add' and i not in model):
                    model.pop(i, None)
                    model[i] = {**d, 'id': i}
                elif what == 'update':
                    d = {k: d[k] for k in d if r.random() < 0.5}
                    if i in model:
                        model[i] = {**model.pop(i), **d}
                elif what == 'delete':
                    model.pop(i, None)
                ops.append({what: i if what == 'delete' else {**d, 'id': i}})
                lines += [{{'put': 'index', 'add': 'create'}.get(what, what): {'_id': i}}]
                lines += [] if what == 'delete' else [{'doc': d} if what == 'update' else d]
            refresh = r.choice(['', '?refresh=true', '?refresh=wait_for'])
            if r.random() < 0.5:
                self.assertEqual(s.post('/v1/c/docs' + refresh, {'operations': ops}).status, 200)
            else:
                self.bulk(s, lines, '/c/_bulk' + refresh)
            if refresh:
                self.assertEqual(s.get('/v1/c').json['documents'], len(model), seed)
        self.assertEqual(s.post('/c/_refresh', None).status, 200)
        corpus = write_file('model.jsonl', ''.join(json.dumps(d) + '\n' for d in model.values()))
        path = os.path.join(FOLDER, 'model.gx')
        run('build', '-q', '--force', corpus, '-o', path, *FLAGS)
        for q in words + ['alpha beta', 'gamma delta eta', 'all terms']:
            for more in [{}, {'filter': 'year:>4'}, {'filter': 'tags:alpha OR has:title'}]:
                if 'has:title' in more.get('filter', ''):
                    more = {'filter': 'tags:alpha'}
                flags = ['--filter=' + more['filter']] if more else []
                self.assertEqual([(h['id'], h['score']) for h in s.post('/v1/c/search',
                                                                        {'query': q, **more}).json['hits']],
                                 [(h['id'], h['score']) for h in query(path, q, *flags)['hits']], (seed, q, more))
        for i, d in model.items():
            source = s.get('/c/_source/' + i).json
            want = {k: v for k, v in d.items() if k != 'id' and v != ''}
            if 'tags' in want:
                want['tags'] = sorted(want['tags'])
            self.assertEqual(source, want, (seed, i))

    def test_writes_at_once_share_commits(self):
        s = self.open('--commit-every=200')
        first = s.get('/v1/c').json['commit']
        answers, lock = [], threading.Lock()

        def write(t):
            c = s.connect()
            for i in range(10):
                a = s.ask('PUT', '/v1/c/doc/t%d-%d' % (t, i), {'text': 'herd'}, connection=c)
                with lock:
                    answers.append(a.status)
            c.close()

        threads = [threading.Thread(target=write, args=(t,)) for t in range(16)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(answers, [201] * 160)
        s.post('/c/_refresh', None)
        self.assertEqual(s.post('/v1/c/count', {'query': 'herd'}).json['count'], 160)
        metrics = s.get('/metrics').body.decode()
        self.assertIn('gpuidx_writes_total{index="c"} 160', metrics)
        commits = int(metrics.split('gpuidx_commits_total{index="c"} ')[1].split()[0])
        self.assertLess(commits, 80)
        self.assertGreaterEqual(s.get('/v1/c').json['commit'], first + commits)

    def test_what_is_acknowledged_survives_a_kill(self):
        s = self.open()
        kept, stop = [], threading.Event()

        def write(t):
            for i in range(10**6):
                try:
                    if stop.is_set() or s.ask('PUT', '/v1/c/doc/k%d-%d' % (t, i), {'text': 'kept'}).status != 201:
                        return
                except OSError:
                    return
                kept.append('k%d-%d' % (t, i))

        threads = [threading.Thread(target=write, args=(t,)) for t in range(4)]
        [t.start() for t in threads]
        while len(kept) < 40:
            time.sleep(0.01)
        s.stop(signal.SIGKILL)
        [t.join() for t in threads]
        s = self.serve('c=' + self.path, '--writable=c')
        for i in kept:
            self.assertEqual(s.get('/v1/c/doc/' + i).status, 200, i)
        self.assertEqual(s.ask('PUT', '/v1/c/doc/again', {'text': 'x'}).status, 201)

    def test_the_end_answers_what_it_has_taken(self):
        s = self.open('--commit-every=30000')
        answers = []
        write = lambda i: answers.append(s.ask('PUT', '/v1/c/doc/e%d' % i, {'text': 'late'}).status)
        threads = [threading.Thread(target=write, args=(i,)) for i in range(5)]
        [t.start() for t in threads]
        time.sleep(0.5)
        self.assertEqual(s.stop(), 0)
        [t.join() for t in threads]
        self.assertEqual(answers, [201] * 5)
        self.assertEqual(len(query(self.path, 'late')['hits']), 5)

    def test_other_processes_write_too(self):
        s = self.open()
        self.assertEqual(s.ask('PUT', '/v1/c/doc/w1', {'text': 'walrus'}).status, 201)
        run('add', '-q', '--wait', self.path,
            write_file('walrus.jsonl', json.dumps({'id': 'w2', 'text': 'walrus'}) + '\n'))
        begin = time.monotonic()
        while s.post('/v1/c/count', {'query': 'walrus'}).json['count'] < 2:
            self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(s.ask('PUT', '/v1/c/doc/w2?refresh=true', {'text': 'other'}).json['result'], 'replaced')
        self.assertEqual(s.post('/v1/c/count', {'query': 'walrus'}).json['count'], 1)

    def test_a_lock_that_another_process_keeps(self):
        s = self.open('--timeout=1000')
        other = subprocess.Popen([GPUIDX, 'add', '-q', '--wait=30', '-f', 'jsonl', self.path, '-'],
                                 stdin=subprocess.PIPE)
        try:
            other.stdin.write((json.dumps({'id': 'o1', 'text': 'x'}) + '\n').encode())
            other.stdin.flush()
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                a = s.ask('PUT', '/v1/c/doc/x', {'text': 'x'})
                if a.status == 503:
                    break
                time.sleep(0.7)  # the server gives the lock back
            self.assertEqual(a.status, 503)
            self.assertIn('cannot be changed now', a.json['error']['message'])
            self.assertEqual(a.headers['Retry-After'], '1')
            self.assertEqual(s.post('/v1/c/search', {'query': 'terms'}).status, 200)
        finally:
            other.stdin.close()
            other.wait(60)
        self.assertEqual(s.ask('PUT', '/v1/c/doc/x2', {'text': 'x'}).status, 201)

    def test_vectors_are_written(self):
        path = os.path.join(os.path.dirname(collection()), 'vectors')
        docs = {'v1': {'a': 1.5, 'b': 0.25}, 'v2': {'a': 0.5}}
        make = lambda docs: ''.join(json.dumps({'id': i, 'vector': v, 'year': 3}) + '\n' for i, v in docs.items())
        flags = ['-f', 'vectors', '--unit=0.01', '--attr=year:int']
        run('add', '-q', '--create', path, write_file('v.jsonl', make(docs)), *flags)
        s = self.serve('c=' + path, '--writable=c')
        a = s.ask('PUT', '/v1/c/doc/v3?refresh=true', {'vector': {'b': 2, 'c': 0.07}, 'title': 'three', 'year': 3})
        self.assertEqual((a.status, a.json['result']), (201, 'created'))
        a = s.ask('PATCH', '/v1/c/doc/v1?refresh=true', {'vector': {'a': 3.25}})
        self.assertEqual((a.status, a.json['result']), (200, 'replaced'))
        lines = [{'index': {'_id': 'v4'}}, {'vector': {'c': 1.125, 'a': 0.01}, 'year': 3}, {'delete': {'_id': 'v2'}},
                 {'index': {'_id': 'bad'}}, {'text': 'no vector'}]
        a = s.ask('POST', '/c/_bulk?refresh=true', ''.join(json.dumps(l) + '\n' for l in lines).encode(),
                  {'Content-Type': 'application/x-ndjson'}).json
        self.assertEqual([list(i.values())[0]['status'] for i in a['items']], [201, 200, 400])
        left = {'v3': {'b': 2, 'c': 0.07}, 'v1': {'a': 3.25}, 'v4': {'c': 1.125, 'a': 0.01}}
        whole = path + '.gx'
        run('build', '-q', '-o', whole, write_file('w.jsonl', make(left)), *flags)
        other = self.serve('f=' + whole)
        for vector in [{'a': 1}, {'b': 0.5, 'c': 2}, {'a': 1, 'b': 1, 'c': 1}]:
            want, got = [[(h['id'], h['score']) for h in at.post(route, {'vector': vector, 'filter': 'year:3'})
                          .json['hits']] for at, route in [(other, '/v1/f/search'), (s, '/v1/c/search')]]
            self.assertEqual(got, want)
        self.assertEqual(s.get('/c/_source/v3').json['title'], 'three')
        for body, words in [({'text': 'x'}, "no 'vector'"), ({'vector': []}, 'no object'),
                            ({'vector': {'a': 0}}, 'above 0'), ({'vector': {'a': -1}}, 'above 0'),
                            ({'vector': {'a': 'x'}}, 'number'), ({'vector': {'': 1}}, ''),
                            ({'vector': {'a': 1e30}}, ''),
                            ({'vector': None}, 'no object'), ({'vectors': {'a': 1}}, 'vector')]:
            for method in ('PUT', 'PATCH'):
                a = s.ask(method, '/v1/c/doc/v1', body)
                self.assertEqual(a.status, 400, body)
                self.assertIn(words, a.json['error']['message'])
        a = self.serve('c=' + collection(), '--writable=c').ask('PUT', '/v1/c/doc/x', {'vector': {'a': 1}})
        self.assertEqual(a.status, 400)
        self.assertIn("no field 'vector'", a.json['error']['message'])

    def test_only_what_is_writable_is_written(self):
        path = build()
        s = self.serve('c=' + collection(), 'f=' + path)
        for name in ['c', 'f']:
            for method, route in [('PUT', '/v1/%s/doc/x'), ('DELETE', '/v1/%s/doc/x'), ('PUT', '/%s/_doc/x'),
                                  ('DELETE', '/%s/_doc/x'), ('POST', '/%s/_bulk'), ('POST', '/v1/%s/docs')]:
                a = s.ask(method, route % name, {'index': {}})
                self.assertEqual(a.status, 403, route)
                self.assertIn('--writable=' + name, a.body.decode())
            self.assertEqual(s.post('/%s/_refresh' % name, None).status, 200)
        for flag, words in [('--writable=f', 'index file'), ('--writable=none', 'no index'),
                            ('--writable=', 'no index')]:
            p = subprocess.run([GPUIDX, 'serve', 'f=' + path, flag, '--listen=127.0.0.1:0'], capture_output=True,
                               text=True, timeout=60)
            self.assertEqual(p.returncode, 2)
            self.assertIn(words, p.stderr)

    def test_tokens_say_who_writes(self):
        tokens = {'tokens': [{'name': 'r', 'token': 'the-token-of-a-reader'},
                             {'name': 'w', 'token': 'the-token-of-a-writer', 'access': 'write', 'indexes': ['c']}]}
        path = write_file('who.json', json.dumps(tokens))
        s = self.serve('c=' + collection(), 'd=' + collection(), '--writable=c,d', '--tokens=' + path)
        ask = lambda who, route: s.ask('PUT', route, {'text': 'x'}, {'Authorization': 'Bearer the-token-of-a-' + who})
        self.assertEqual(ask('reader', '/v1/c/doc/x').status, 403)
        self.assertEqual(ask('writer', '/v1/c/doc/x').status, 201)
        self.assertEqual(ask('writer', '/c/_doc/x').status, 200)
        self.assertEqual(ask('writer', '/v1/d/doc/x').status, 403)
        tokens['tokens'][1]['filter'] = 'tenant:a'
        path = write_file('who2.json', json.dumps(tokens))
        p = subprocess.run([GPUIDX, 'serve', 'c=' + collection(), '--tokens=' + path], capture_output=True, text=True,
                           timeout=60)
        self.assertEqual(p.returncode, 3)
        self.assertIn('a token with a filter cannot write', p.stderr)

    def test_limits(self):
        s = self.open('--max-documents=3')
        ops = [{'put': {'id': 'x%d' % i, 'text': 'x'}} for i in range(4)]
        self.assertEqual(s.post('/v1/c/docs', {'operations': ops}).status, 413)
        self.bulk(s, [x for o in ops for x in ({'index': {'_id': o['put']['id']}}, {'text': 'x'})], '/c/_bulk', 413)
        self.assertEqual(s.post('/v1/c/docs', {'operations': ops[:3]}).status, 200)

    def test_an_empty_collection_takes_its_first_document(self):
        s = self.open(documents=[])
        self.assertEqual(s.get('/v1/c').json['documents'], 0)
        self.assertEqual(s.ask('PUT', '/v1/c/doc/a?refresh=true', {'text': 'first'}).status, 201)
        self.assertEqual([h['id'] for h in s.post('/v1/c/search', {'query': 'first'}).json['hits']], ['a'])

    def test_readers_see_whole_commits(self):
        """Each request replaces all of three documents; no search may see two of their generations."""
        s = self.open('--commit-every=1', documents=[{'id': 'g%d' % i, 'text': 'gen gen0'} for i in range(3)])
        stop, bad = threading.Event(), []

        def read():
            c = s.connect()
            while not stop.is_set():
                a = s.post('/v1/c/search', {'query': 'gen', 'fields': ['text']}, connection=c)
                texts = {h['text'] for h in a.json.get('hits', [])} if a.status == 200 else set()
                if a.status != 200 or len(texts) != 1 or len(a.json['hits']) != 3:
                    bad.append((a.status, a.body))
            c.close()

        readers = [threading.Thread(target=read) for _ in range(3)]
        [t.start() for t in readers]
        for n in range(1, 40):
            ops = [{'put': {'id': 'g%d' % i, 'text': 'gen gen%d' % n}} for i in range(3)]
            a = s.post('/v1/c/docs?refresh=wait_for', {'operations': ops})
            self.assertEqual((a.status, a.json['replaced']), (200, 3))
            self.assertIn(b'gen%d' % n, s.post('/v1/c/search', {'query': 'gen', 'fields': ['text']}).body)
        stop.set()
        [t.join() for t in readers]
        self.assertEqual(bad, [])


if __name__ == '__main__':
    main()
