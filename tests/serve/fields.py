#!/usr/bin/env python3
"""Searches by fields: our own protocol, Elasticsearch's and MCP's against `gpuidx query --fields`."""
import unittest

from serving import DOCUMENTS, Server, build, main, query

TEXTS = ['title', 'index', 'inverted index', 'terms', 'terms 7 documents', 'zebra', 'all terms']


class Fields(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        documents = [{**d, 'title': d['title'] + (' index terms' if i % 3 == 0 else '')}
                     for i, d in enumerate(DOCUMENTS)]
        cls.path, cls.bare = build('fields', documents, '--field=title,text'), build('bare')
        cls.server = Server('docs=' + cls.path, 'bare=' + cls.bare, '--engine=cpu', '--threads=2')

    @classmethod
    def tearDownClass(cls):
        if cls.server.stop() != 0:
            raise AssertionError('the server failed: ' + ''.join(cls.server.words))

    def native(self, body, status=200):
        a = self.server.post('/v1/docs/search', body)
        self.assertEqual(a.status, status, a.body)
        return a.json

    def elastic(self, q, status=200, **more):
        a = self.server.post('/docs/_search', {'query': q, **more})
        self.assertEqual(a.status, status, a.body)
        if status != 200:
            return a.json['error']['reason']
        return [(h['_id'], h['_score']) for h in a.json['hits']['hits']]

    def right(self, text, *flags):
        return [(h['id'], h['score']) for h in query(self.path, text, *flags)['hits']]

    def same(self, q, text, *flags):
        have, want = self.elastic(q), self.right(text, *flags)
        self.assertEqual([i for i, _ in have], [i for i, _ in want], (q, flags))
        for (_, a), (_, b) in zip(have, want):
            self.assertAlmostEqual(a, b, delta=1e-5 * abs(b))

    def test_native(self):
        for scoring in ['bm25f', 'best', 'sum']:
            for fields in ['title^3,text:b=0.9', 'all']:
                for more, flags in [({}, []), ({'filter': 'kind:odd'}, ['--filter=kind:odd']),
                                    ({'op': 'and', 'k1': 2}, ['--op=and', '--k1=2']),
                                    ({'facets': ['kind'], 'count': True}, ['--facet=kind']),
                                    ({'scorer': 'bm25:lucene', 'explain': True}, ['--scorer=bm25:lucene', '--explain']),
                                    ({'sort': 'year:desc'}, ['--sort=year:desc'])]:
                    for text in TEXTS[2:4]:
                        ours = self.native({'query': text, 'fields': fields, 'field-scoring': scoring, **more})
                        theirs = query(self.path, text, '--fields=' + fields, '--field-scoring=' + scoring, *flags)
                        for name in ['seconds', 'qid', 'matches']:
                            ours.pop(name, None), theirs.pop(name, None)
                        for hit in theirs['hits']:
                            hit.pop('snippet', None)
                        self.assertEqual(ours, theirs)

    def test_native_shows_and_refuses(self):
        self.native({'query': 'index', 'fields': ['id', 'title']})
        self.assertEqual(self.server.get('/v1/docs').json['fields'], ['title', 'text'])
        for body in [{'fields': 'tilte'}, {'fields': 'title^-1'}, {'fields': 'title', 'field-scoring': 'most'},
                     {'field-scoring': 'sum'}, {'fields': 'title', 'scorer': 'impact'}, {'fields': ''}]:
            self.native({'query': 'index', **body}, 400)
        self.assertIn('nearest is title', self.native({'query': 'a', 'fields': 'tilte'}, 400)['error']['message'])
        a = self.server.post('/v1/bare/search', {'query': 'index', 'fields': 'title'})
        self.assertEqual(a.status, 400)

    def test_multi_match(self):
        for text in TEXTS[1:6:2]:
            for kind, scoring in [(None, 'best'), ('best_fields', 'best'), ('most_fields', 'sum'),
                                  ('cross_fields', 'bm25f')]:
                q = {'query': text, 'fields': ['title^3', 'text'], **({'type': kind} if kind else {})}
                self.same({'multi_match': q}, text, '--fields=title^3,text', '--field-scoring=' + scoring)
            self.same({'multi_match': {'query': text, 'fields': ['title', 'text'], 'tie_breaker': 1.0}}, text,
                      '--fields=title,text', '--field-scoring=sum')
            every = {'query': text, 'fields': ['*'], 'operator': 'and', 'type': 'cross_fields'}
            self.same({'multi_match': every}, text, '--fields=all', '--op=and')
            self.same({'combined_fields': {'query': text, 'fields': ['title^2', 'text'], 'operator': 'and'}}, text,
                      '--fields=title^2,text', '--op=and')
            self.same({'multi_match': {'query': text}}, text, '--fields=all', '--field-scoring=best')
            self.same({'bool': {'must': {'combined_fields': {'query': text, 'fields': ['title^2', 'text']}},
                                'filter': {'term': {'kind': 'odd'}}}}, text, '--fields=title^2,text',
                      '--filter=kind:odd')

    def test_one_field(self):
        def alone(name, text):
            return self.right('%s:(%s)' % (name, text), '--fields=all', '--syntax=boolean')
        for text in TEXTS:
            for name in ['title', 'text']:
                have = self.elastic({'match': {name: text}})
                self.assertEqual([i for i, _ in have], [i for i, _ in alone(name, text)])
        self.same({'bool': {'must': [{'match': {'title': 'index'}}], 'must_not': [{'match': {'text': 'terms'}}]}},
                  '+title:index -text:terms', '--fields=all', '--syntax=boolean')
        self.same({'query_string': {'query': 'title:index OR merge'}}, 'title:index OR merge', '--fields=all',
                  '--syntax=boolean')
        self.same({'match': {'_all': 'inverted index'}}, 'inverted index')
        properties = self.server.get('/docs/_mapping').json['docs']['mappings']['properties']
        self.assertEqual(properties['title']['type'], 'text')

    def test_refused(self):
        for q, why in [
                ({'multi_match': {'query': 'index', 'fields': ['tilte']}}, 'nearest is title'),
                ({'multi_match': {'query': 'index', 'fields': ['title^x']}}, 'weight'),
                ({'multi_match': {'query': 'index', 'fields': ['title:b=1']}}, 'no field'),
                ({'multi_match': {'query': 'index', 'type': 'phrase'}}, 'not available'),
                ({'multi_match': {'query': 'index', 'operator': 'and'}}, 'cross_fields'),
                ({'multi_match': {'query': 'index', 'tie_breaker': 0.3}}, 'only 0'),
                ({'bool': {'must': [{'combined_fields': {'query': 'index', 'fields': ['title^2', 'text']}},
                                    {'match': {'title': 'terms'}}]}}, 'one kind'),
                ({'bool': {'must': [{'match': {'_all': 'index'}}, {'multi_match': {'query': 'terms'}}]}}, 'one kind'),
                ({'bool': {'must': [{'multi_match': {'query': 'index', 'fields': ['title']}},
                                    {'multi_match': {'query': 'terms', 'fields': ['text']}}]}}, 'one set'),
                ({'term': {'title': 'a'}}, 'text'), ({'prefix': {'title': 'a'}}, 'one field'),
                ({'match_phrase': {'title': 'a b'}}, 'one field')]:
            self.assertIn(why, self.elastic(q, 400), q)

    def test_agents(self):
        def call(arguments):
            return self.server.post('/mcp/docs', {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {
                'name': 'search', 'arguments': arguments}}).json['result']
        self.assertFalse(call({'query': 'index', 'fields': 'title^3,text'})['isError'])
        self.assertTrue(call({'query': 'index', 'fields': 'tilte'})['isError'])


if __name__ == '__main__':
    main()
