#!/usr/bin/env python3
"""Our own protocol, Anserini's and Search-R1's, against `gpuidx query`; and what is said of malformed requests."""
import json
import os
import unittest
import urllib.parse

from serving import DOCUMENTS, FOLDER, Server, build, main, query


def without_time(answer):
    return {k: v for k, v in answer.items() if k not in ('seconds', 'qid')}


class Native(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = build()
        cls.server = Server('docs=' + cls.path, '--engine=cpu', '--threads=2', '--max-k=1000', '--max-queries=50')

    @classmethod
    def tearDownClass(cls):
        if cls.server.stop() != 0:
            raise AssertionError('the server failed: ' + ''.join(cls.server.words))

    def search(self, body, status=200):
        a = self.server.post('/v1/docs/search', body)
        self.assertEqual(a.status, status, a.body)
        return a.json

    def same(self, flags, body):
        ours, theirs = self.search(body), query(self.path, body['query'], *flags)
        if 'matches' not in ours:
            theirs.pop('matches')
        for hit in theirs['hits']:
            if not body.get('snippets'):
                hit.pop('snippet', None)
        self.assertEqual(without_time(ours), without_time(theirs))

    def test_answers_are_those_of_query(self):
        for flags, body in [
            ([], {}), (['-k', '2'], {'k': 2}), (['--op=and'], {'op': 'and'}), (['--op=and-or'], {'op': 'and-or'}),
            (['--scorer=bm25:lucene'], {'scorer': 'bm25:lucene'}), (['--k1=25', '--b=1'], {'k1': 25, 'b': 1.0}),
            (['--filter=year:>=2003 AND kind:odd'], {'filter': 'year:>=2003 AND kind:odd'}),
            (['--explain'], {'explain': True}), (['--rm3=2,3,0.5'], {'rm3': '2,3,0.5'}),
            (['--facet=kind,year:all'], {'facets': ['kind', 'year:all']}), ([], {'count': True}),
            (['--sums=year:sum:min,year:p50'], {'sums': 'year:sum:min,year:p50'}),
            (['--facet=kind:sum=year,tenant/kind', '--sums=year'],
             {'facets': ['kind:sum=year', 'tenant/kind'], 'sums': 'year'}),
            (['--sort=year:desc', '-k', '3'], {'sort': 'year:desc', 'k': 3}),
            (['--sort=kind,year:desc', '--filter=year:>2002'], {'sort': 'kind,year:desc', 'filter': 'year:>2002'}),
            (['--sort=kind', '--facet=kind'], {'sort': 'kind', 'facets': ['kind']}),
            (['--facet=kind:exclude-own', '--filter=kind:odd'],
             {'facets': ['kind:exclude-own'], 'filter': 'kind:odd'}),
            (['--show=year,kind'], {'attributes': ['year', 'kind']}), (['--show=all'], {'attributes': 'all'}),
            (['--prior=year:w=0.3,form=log'], {'prior': 'year:w=0.3,form=log'}),
            (['--prior=year:w=2,form=sat,half=2004', '--explain'],
             {'prior': 'year:w=2,form=sat,half=2004', 'explain': True}),
            (['--collapse=kind'], {'collapse': 'kind', 'snippets': True}),
            (['--collapse=tenant:2'], {'collapse': 'tenant:2', 'snippets': True}),
            (['--collapse=kind:3', '--sort=year:desc', '--offset=1', '--show=all'],
             {'collapse': 'kind:3', 'sort': 'year:desc', 'offset': 1, 'attributes': 'all', 'snippets': True}),
            (['--offset=2', '--sort=kind'], {'offset': 2, 'sort': 'kind'}), (['--quotes=words'], {'quotes': 'words'}),
            ([], {'snippets': True}), (['--syntax=boolean'], {'syntax': 'boolean'}), (['--prune=off'],
            {'prune': False}),
        ]:
            for text in ['inverted index', 'terms', 'all terms and more', 'zebra', '', 'gr\u00fc\u00dfe',
                'index zebra']:
                with self.subTest(flags=flags, text=text):
                    self.same(flags, {'query': text, **body})

    def test_pairs_of_words_and_what_quotes_mean(self):
        path = build('pairs', DOCUMENTS, '--positions')
        with Server('docs=' + path, '--engine=cpu') as server:
            for flags, body in [(['--sdm'], {'sdm': 'on'}), (['--sdm=1,0.5,0'], {'sdm': '1,0.5,0'}),
                                (['--sdm', '--op=and'], {'sdm': '0.85,0.1,0.05', 'op': 'and'}),
                                (['--quotes=words'], {'quotes': 'words'}), ([], {})]:
                for text in ['inverted index of terms', 'all terms', '"all terms" index']:
                    ours = server.post('/v1/docs/search', {'query': text, **body}).json
                    self.assertEqual([(h['id'], h['score']) for h in ours['hits']],
                                     [(h['id'], h['score']) for h in query(path, text, *flags)['hits']])
            for body, words in [({'sdm': '1,2'}, 'WORDS,ORDERED'), ({'sdm': 'on', 'op': 'and-or'}, 'AND first'),
                                ({'sdm': 'on', 'syntax': 'boolean'}, 'boolean'), ({'sdm': 'on', 'rm3': 'on'}, 'rm3'),
                                ({'quotes': 'some'}, 'phrase|words')]:
                a = server.post('/v1/docs/search', {'query': 'all terms', **body})
                self.assertEqual(a.status, 400, a.body)
                self.assertIn(words, a.json['error']['message'])
        self.assertIn('--positions', self.search({'query': 'x', 'sdm': 'on'}, 400)['error']['message'])

    def test_pages(self):
        whole = self.search({'query': 'terms index all', 'k': 9})['hits']
        for offset in range(0, 9, 2):
            part = self.search({'query': 'terms index all', 'k': 2, 'offset': offset})['hits']
            self.assertEqual(part, whole[offset:offset + 2])
        self.assertEqual(self.search({'query': 'terms', 'k': 5, 'offset': 500})['hits'], [])
        self.assertEqual(self.search({'query': 'terms', 'k': 0})['hits'], [])

    def test_cursors_go_through_the_whole_list(self):
        for more in [{}, {'sort': 'kind,year:desc'}, {'collapse': 'year'}, {'collapse': 'kind', 'sort': 'year'},
                     {'filter': 'year:>2002'}, {'op': 'and'},
                     {'sort': 'year:desc', 'filter': 'kind:odd', 'attributes': 'all'}]:
            for text in ['terms index all', '', 'zebra']:
                with self.subTest(more=more, text=text):
                    body = {'query': text, **more}
                    whole, parts, pages = self.search({**body, 'k': 20})['hits'], [], 0
                    page = self.search({**body, 'k': 2, 'cursor': True})
                    while page['hits']:
                        parts += page['hits']
                        pages += 1
                        page = self.search({**body, 'k': 2 + pages % 2, 'after': page['cursor']})
                    self.assertEqual(parts, whole)
                    self.assertNotIn('cursor', page)
        first = self.search({'query': 'terms', 'k': 2, 'cursor': True})
        later = self.search({'query': 'terms', 'k': 2, 'offset': 1, 'after': first['cursor']})
        self.assertEqual([h['rank'] for h in later['hits']], [4])
        self.assertEqual(query(self.path, 'terms', '-k', '2', '--after=' + first['cursor'])['hits'],
                         self.search({'query': 'terms', 'k': 2, 'after': first['cursor'], 'snippets': True})['hits'])
        self.assertNotIn('cursor', self.search({'query': 'terms', 'k': 2}))
        best = [h['id'] for h in self.search({'query': 'terms', 'prior': 'year:w=1', 'k': 4})['hits']]
        page = self.search({'query': 'terms', 'prior': 'year:w=1', 'k': 2, 'cursor': True})
        page = self.search({'query': 'terms', 'prior': 'year:w=1', 'k': 2, 'after': page['cursor']})
        self.assertEqual([h['id'] for h in page['hits']], best[2:])
        for body, place in [({'query': 'index', 'after': first['cursor']}, 'query'),
                            ({'query': 'terms', 'after': first['cursor'], 'op': 'and'}, 'query'),
                            ({'query': 'terms', 'after': first['cursor'], 'filter': 'kind:odd'}, 'query'),
                            ({'query': 'terms', 'after': first['cursor'][:-3]}, 'query'),
                            ({'query': 'terms', 'after': 'x'}, 'query'), ({'query': 'terms', 'after': ''}, 'after'),
                            ({'query': 'terms', 'after': 3}, 'after'),
                            ({'query': 'terms', 'prior': 'year:w=1', 'after': first['cursor']}, 'query'),
                            ({'query': 'x', 'prior': 'kind:w=1'}, 'prior'), ({'query': 'x', 'prior': 'nope'}, 'prior'),
                            ({'query': 'x', 'attributes': ['year', 'yeer']}, 'attributes[1]'),
                            ({'query': 'x', 'attributes': ['year', 'year']}, 'attributes[1]'),
                            ({'query': 'x', 'attributes': 'year'}, 'attributes'),
                            ({'query': 'x', 'algorithm': 'pmf', 'prune': False}, 'algorithm'),
                            ({'query': 'x', 'algorithm': 'block-max', 'op': 'and'}, 'algorithm'),
                            ({'query': 'x', 'collapse': 'nope'}, 'collapse'),
                            ({'query': 'x', 'collapse': ''}, 'collapse'),
                            ({'query': 'x', 'collapse': 'kind:0'}, 'collapse'),
                            ({'query': 'terms', 'cursor': 1}, 'cursor'),
                            ({'queries': ['terms'], 'after': first['cursor']}, 'after')]:
            self.assertEqual(self.search(body, 400)['error']['member'], place, body)
        many = self.search({'queries': ['terms', 'zebra', 'index'], 'k': 1, 'cursor': True})['answers']
        self.assertEqual(['cursor' in a for a in many], [True, False, True])

    def test_the_table_is_the_schema(self):
        paths = self.server.get('/openapi.json').json['paths']
        schema = paths['/v1/{index}/search']['post']['requestBody']['content']['application/json']['schema']
        for name, member in schema['properties'].items():
            self.assertTrue('type' in member or 'oneOf' in member, name)
            self.assertTrue(member['description'], name)
            wrong = self.search({'query': 'x', name: [{}]}, 400)['error']
            self.assertNotIn('there is no member', wrong['message'])
        told = self.search({'query': 'x', 'nope': 1}, 400)['error']['message']
        for name in told.split('there are ')[1].split(', '):
            self.assertIn(name, schema['properties'])
        self.assertEqual(schema['properties']['op']['enum'], ['or', 'and', 'and-or'])

    def test_a_backslash_at_the_end_is_refused(self):
        for text in ['\\', 'terms \\', 'terms\\', 'terms*\\', '+terms (index\\']:
            a, b = (self.server.post('/v1/docs/search', {'query': text, 'syntax': 'boolean'}) for _ in range(2))
            self.assertEqual(a.status, 400, a.body)
            self.assertEqual((a.status, [without_time(x) for x in [a.json]]), (b.status, [without_time(b.json)]))

    def test_many_queries(self):
        texts = ['terms', 'index', 'zebra'] * 10
        many = self.search({'queries': [{'query': t, 'qid': str(i)} for i, t in enumerate(texts)], 'k': 3})
        self.assertEqual([a['qid'] for a in many['answers']], [str(i) for i in range(len(texts))])
        for text, answer in zip(texts, many['answers']):
            self.assertEqual(answer['hits'], self.search({'query': text, 'k': 3})['hits'])
        lines = ''.join(json.dumps({'query': t, 'k': 3, 'qid': 'q'}) + '\n' for t in texts)
        a = self.server.ask('POST', '/v1/docs/search', lines, {'Content-Type': 'application/x-ndjson'})
        self.assertEqual([x['hits'] for x in a.lines], [x['hits'] for x in many['answers']])
        self.assertEqual(self.server.ask('POST', '/v1/docs/search', lines.strip(),
                                         {'Content-Type': 'application/x-ndjson'}).status, 200)

    def test_vectors_and_marks(self):
        hits = self.search({'vector': {'term': 2.0, 'index': 1}, 'k': 3})['hits']
        self.assertEqual(len(hits), 3)
        hit = self.search({'query': 'pruning', 'snippets': {'marks': True}})['hits'][0]
        self.assertEqual([hit['snippet'][b:e] for b, e in hit['marks']], ['pruning'])
        hit = self.search({'query': 'alle', 'snippets': {'marks': True}})['hits'][0]
        self.assertEqual([hit['snippet'][b:e] for b, e in hit['marks']], ['alle'])
        self.assertEqual(self.search({'query': 'pruning', 'fields': ['text']})['hits'][0]['text'], DOCUMENTS[2]['text'])

    def test_counts_and_indexes(self):
        self.assertEqual(self.server.post('/v1/docs/count', {'query': 'terms'}).json['count'],
                         query(self.path, 'terms')['matches'])
        self.assertEqual(self.server.post('/v1/docs/count', {'query': 'terms', 'filter': 'kind:odd'}).json['count'],
                         query(self.path, 'terms', '--filter=kind:odd')['matches'])
        self.assertEqual(self.server.get('/v1').json['indexes'][0]['documents'], len(DOCUMENTS))
        self.assertEqual([a['name'] for a in self.server.get('/v1/docs').json['attributes']], ['year', 'kind',
            'tenant'])
        self.assertIn('/v1/{index}/search', self.server.get('/openapi.json').json['paths'])

    def test_anserini(self):
        a = self.server.get('/v1/docs/search?' + urllib.parse.urlencode({'query': 'inverted index', 'hits': 2})).json
        self.assertEqual((a['api'], a['index'], a['query']), ('v1', 'docs', {'text': 'inverted index'}))
        hits = query(self.path, 'inverted index', '-k', '2')['hits']
        self.assertEqual([(c['docid'], c['score'], c['rank']) for c in a['candidates']],
                         [(h['id'], h['score'], h['rank']) for h in hits])
        for c in a['candidates']:
            d = DOCUMENTS[int(c['docid'][1:])]
            self.assertEqual(c['doc'], {'id': d['id'], 'title': d['title'], 'contents': d['text']})
        doc = self.server.get('/v1/docs/doc/d04').json
        self.assertEqual((doc['docid'], doc['doc']['contents']), ('d04', DOCUMENTS[4]['text']))
        self.assertEqual(self.server.get('/v1/docs/doc/d04?parse=false').json['doc'], DOCUMENTS[4]['text'])
        self.assertEqual(self.server.get('/v1/docs/doc/none').status, 404)
        for path in ['/v1/docs/search', '/v1/docs/search?query=x&hits=0', '/v1/docs/search?query=x&hits=-1',
                     '/v1/docs/search?query=x&hits=1001', '/v1/docs/search?query=x&hits=ten',
                     '/v1/docs/search?query=x&k=1',
                     '/v1/docs/search?query=x&parse=maybe']:
            answer = self.server.get(path)
            self.assertEqual(answer.status, 400, path)
            self.assertIsInstance(answer.json['error'], str)

    def test_retrieve(self):
        texts = ['terms', 'zebra', 'inverted index']
        for path in ['/retrieve', '/retrieve/docs']:
            a = self.server.post(path, {'queries': texts, 'topk': 2, 'return_scores': True}).json['result']
            for text, found in zip(texts, a):
                hits = query(self.path, text, '-k', '2')['hits']
                self.assertEqual([(f['document']['id'], f['score']) for f in found], [(h['id'],
                    h['score']) for h in hits])
                for f in found:
                    d = DOCUMENTS[int(f['document']['id'][1:])]
                    self.assertEqual(f['document']['contents'], '"%s"\n%s' % (d['title'], d['text']))
        plain = self.server.post('/retrieve', {'queries': texts}).json['result']
        self.assertEqual([len(p) for p in plain], [3, 0, 3])
        self.assertEqual(sorted(plain[0][0]), ['contents', 'id'])
        self.assertEqual(self.server.post('/retrieve', {'queries': []}).json, {'result': []})

    def test_places_of_faults(self):
        for body, line, column, member in [
            ('{"query": 3}', 1, 11, 'query'), ('{"query": "x",\n "k": "ten"}', 2, 7, 'k'), ('{"query": "x", "k": -1}',
            1, 21, 'k'),
            ('{"query": "x", "k": 1001}', 1, 21, 'k'), ('{"query": "x", "k": 1.5}', 1, 21, 'k'),
            ('{"query": "x", "op": "xor"}', 1, 22, 'op'), ('{"query": "x", "b": 1.5}', 1, 21, 'b'),
            ('{"query": "x", "size": 3}', 1, 24, 'size'), ('{"query": "x", "sort": "nope"}', 1, 24, 'sort'),
            ('{"query": "x",\n\n  "filter": "yeer:3"}', 3, 13, 'filter'), ('{"query": "x", "filter": "year:"}', 1, 26,
            'filter'),
            ('{"query": "x", "filter": "id:@/etc/passwd"}', 1, 26, 'filter'),
            ('{"queries": ["x", 7]}', 1, 19, 'queries[1]'), ('{"queries": [{"query": "x"}, {"text": "y"}]}', 1, 39,
            'queries[1].text'),
            ('{"query": "x", "facets": ["kind", "kin"]}', 1, 35, 'facets[1]'),
            ('{"query": "(x", "syntax": "boolean"}', 1, 11, 'query'),
            ('{"queries": ["x", "+"], "syntax": "boolean"}', 1, 19, 'queries[1]'),
            ('{"query": "x", "snippets": {"mark": true}}', 1, 37, 'snippets.mark'), ('{"vector": {"a": 1, "b": -1}}',
            1, 26, 'vector.b'),
            ('{"query": "x" "k": 3}', 1, 15, None), ('{"query": "x"', 1, None, None), ('', None, None, None), ('[]',
            1, 1, None),
            ('{"query": "x", "query": "y"}', 1, None, None), ('{"query": "\x01"}', 1, None, None), ('nonsense', 1,
            None, None),
            ('{"k": 3}', 1, 1, None), ('{"query": "x", "queries": ["y"]}', 1, 1, None), ('{"queries": []}', 1, 13,
            'queries'),
            ('[' * 100 + ']' * 100, 1, 65, None), ('{"query": "x", "rm3": "1,2"}', 1, 23, 'rm3'),
            ('{"query": "\\ud800"}', 1, None, None), (b'{"query": "\xff"}', 1, None, None),
        ]:
            with self.subTest(body=body):
                a = self.server.post('/v1/docs/search', body)
                self.assertEqual(a.status, 400, a.body)
                e = a.json['error']
                self.assertTrue(e['message'])
                if line:
                    self.assertEqual(e.get('line'), line, e)
                if column:
                    self.assertEqual(e.get('column'), column, e)
                if member:
                    self.assertEqual(e.get('member'), member, e)

    def test_faults_of_lines(self):
        a = self.server.ask('POST', '/v1/docs/search', '{"query": "x"}\n\n{"query": "y", "k": "z"}\n',
                            {'Content-Type': 'application/x-ndjson'})
        self.assertEqual((a.status, a.json['error']['line'], a.json['error']['column'], a.json['error']['member']),
                         (400, 3, 21, 'k'))
        a = self.server.ask('POST', '/v1/docs/search', '{"query": "x"}\n{"query": ,}',
            {'Content-Type': 'application/x-ndjson'})
        self.assertEqual((a.status, a.json['error']['line']), (400, 2))
        a = self.server.ask('POST', '/v1/docs/search', '\n \n', {'Content-Type': 'application/x-ndjson'})
        self.assertEqual(a.status, 400)

    def test_limits_and_paths(self):
        self.assertEqual(self.server.post('/v1/docs/search', {'queries': ['x'] * 51}).status, 413)
        self.assertEqual(self.server.post('/v1/nope/search', {'query': 'x'}).status, 404)
        for method, path, status in [('GET', '/nope', 404), ('PUT', '/v1/docs/search', 405), ('GET',
            '/v1/docs/search/', 404),
                                     ('GET', '//v1', 404), ('GET', '/v1/docs/doc/', 404), ('GET', '/v1/../etc/passwd',
                                     404),
                                     ('GET', '/v1/%2e%2e/more', 404), ('HEAD', '/v1', 200)]:
            with self.subTest(path=path):
                self.assertEqual(self.server.ask(method, path).status, status)
        a = self.server.ask('PUT', '/v1')
        self.assertEqual(a.headers['Allow'], 'GET')
        terms = ' '.join('w%d' % i for i in range(1025))
        self.assertEqual(self.server.post('/v1/docs/search', {'query': terms}).status, 400)

    def test_words_are_suggested(self):
        a = self.server.get('/v1/docs/suggest?prefix=Map&n=2').json
        self.assertEqual(a, {'schema': 1, 'words': [{'term': 'map', 'df': 1, 'distance': 0}], 'matched': 1})
        a = self.server.get('/v1/docs/suggest?like=' + urllib.parse.quote('indxe')).json
        self.assertEqual([(w['term'], w['df'], w['distance']) for w in a['words']], [('index', 3, 1)])
        self.assertEqual(self.server.get('/v1/docs/suggest?like=index').json['words'], [])
        for bad in ('', '?prefix=', '?prefix=a&like=b', '?prefix=a&n=0', '?prefix=a&n=1001', '?word=a'):
            a = self.server.get('/v1/docs/suggest' + bad)
            self.assertEqual(a.status, 400, bad)
            self.assertTrue(a.json['error']['message'])
        self.assertEqual(self.server.get('/v1/nope/suggest?prefix=a').status, 404)

    def test_synonyms_and_scoring_are_those_of_query(self):
        rules = 'squeeze, press => compression, squeeze\nlist, index\n'
        path = os.path.join(FOLDER, 'rules.txt')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(rules)
        self.same(['--synonyms=' + path], {'query': 'squeeze list', 'synonyms': rules, 'snippets': True})
        self.same(['--synonyms=' + path, '--op=and'], {'query': 'press index', 'synonyms': rules, 'op': 'and'})
        for scoring in ('each', 'one', 'constant'):
            self.same(['--syntax=boolean', '--expansion-scoring=' + scoring, '--explain'],
                      {'query': 'inde* OR te*^2', 'syntax': 'boolean', 'expansion-scoring': scoring, 'explain': True})
        self.same(['--query-k1=1.5', '--query-b=0.2'],
                  {'query': 'terms terms index', 'query-k1': 1.5, 'query-b': 0.2})
        a = self.search({'query': 'list', 'synonyms': 'list, index\nmerge =>'}, 400)
        self.assertIn('line 2, column 9', a['error']['message'])
        self.assertEqual(a['error']['member'], 'synonyms')
        self.search({'query': 'a', 'synonyms': ['a, b']}, 400)
        self.search({'query': 'a', 'expansion-scoring': 'some'}, 400)

    def test_a_connection_serves_many_requests(self):
        c = self.server.connect()
        for i in range(200):
            body = {'query': 'terms', 'k': 1 + i % 5}
            if i % 3 == 0:
                body['count'] = True
            self.assertEqual(self.server.post('/v1/docs/search', body if i % 7 else '{', connection=c).status,
                200 if i % 7 else 400)
        c.close()


if __name__ == '__main__':
    main()
