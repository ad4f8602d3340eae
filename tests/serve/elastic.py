#!/usr/bin/env python3
"""Elasticsearch's subset, request by request: against what the documents themselves say."""
import json
import re
import unittest

from serving import DOCUMENTS, Server, build, main, query


def words_of(d):
    return set(re.findall(r'\w+', (d['title'] + ' ' + d['text']).lower()))


def ids(answer):
    return [h['_id'] for h in answer['hits']['hits']]


class Elastic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = build('docs', DOCUMENTS, '--analyzer=simple')
        cls.server = Server('docs=' + cls.path, 'more=' + cls.path, '--engine=cpu', '--threads=2')

    @classmethod
    def tearDownClass(cls):
        if cls.server.stop() != 0:
            raise AssertionError('the server failed: ' + ''.join(cls.server.words))

    def search(self, body, status=200, path='/docs/_search'):
        a = self.server.post(path, body)
        self.assertEqual(a.status, status, a.body)
        self.assertEqual(a.headers['X-Elastic-Product'], 'Elasticsearch')
        return a.json

    def found(self, q):
        """The ids that a query finds, all of them; the total must be their number."""
        a = self.search({'query': q, 'size': 100})
        self.assertEqual(a['hits']['total'], {'value': len(ids(a)), 'relation': 'eq'}, q)
        counted = self.server.post('/docs/_count', {'query': q}).json['count']
        self.assertEqual(counted, len(ids(a)), q)
        scores = [h['_score'] for h in a['hits']['hits']]
        self.assertEqual(scores, sorted(scores, reverse=True))
        return set(ids(a))

    def test_a_match_scores_as_query_does(self):
        for text, flags, options in [('inverted index', [], {}), ('all terms', ['--op=and'], {'operator': 'and'}),
                                     ('terms', [], {}), ('zebra', [], {}), ('all terms', ['--op=and'],
                                                                            {'minimum_should_match': '100%'})]:
            theirs = query(self.path, text, *flags)
            for field in ['text', 'title', 'contents', '_all']:
                a = self.search({'query': {'match': {field: {'query': text, **options}}}})
                self.assertEqual([(h['_id'], h['_score']) for h in a['hits']['hits']],
                                 [(h['id'], h['score']) for h in theirs['hits']])
            self.assertEqual(a['hits']['total']['value'], theirs['matches'])
            self.assertEqual(a['hits']['max_score'], theirs['hits'][0]['score'] if theirs['hits'] else None)

    def test_queries_select_what_the_documents_say(self):
        by = lambda condition: {d['id'] for d in DOCUMENTS if condition(d)}
        has = lambda *w: (lambda d: any(x in words_of(d) for x in w))
        match = lambda text: {'match': {'text': text}}
        for q, condition in [
            ({'match_all': {}}, lambda d: True), ({'match_none': {}}, lambda d: False),
            ({'term': {'kind': 'even'}}, lambda d: d['kind'] == 'even'),
            ({'term': {'kind': {'value': 'odd'}}}, lambda d: d['kind'] == 'odd'),
            ({'term': {'year': 2003}}, lambda d: d['year'] == 2003),
            ({'terms': {'year': [2001, 2004, 1900]}}, lambda d: d['year'] in (2001, 2004)),
            ({'terms': {'year': []}}, lambda d: False),
            ({'range': {'year': {'gte': 2002, 'lt': 2005}}}, lambda d: 2002 <= d['year'] < 2005),
            ({'range': {'year': {'gt': 2002, 'lte': 2005}}}, lambda d: 2002 < d['year'] <= 2005),
            ({'range': {'year': {'gt': 2002}}}, lambda d: d['year'] > 2002),
            ({'exists': {'field': 'year'}}, lambda d: True),
            ({'ids': {'values': ['d01', 'd05', 'none']}}, lambda d: d['id'] in ('d01', 'd05')),
            ({'match': {'kind': 'even'}}, lambda d: d['kind'] == 'even'),
            (match('terms index'), has('terms', 'index')),
            ({'multi_match': {'query': 'terms', 'fields': ['title', 'text']}}, has('terms')),
            ({'query_string': {'query': '+terms -more'}}, lambda d: has('terms')(d) and not has('more')(d)),
            ({'query_string': {'query': 'terms OR index', 'default_field': 'text'}}, has('terms', 'index')),
            ({'constant_score': {'filter': {'term': {'kind': 'odd'}}}}, lambda d: d['kind'] == 'odd'),
            ({'bool': {}}, lambda d: True),
            ({'bool': {'must': match('terms'), 'filter': {'term': {'kind': 'odd'}}}},
             lambda d: has('terms')(d) and d['kind'] == 'odd'),
            ({'bool': {'must': [match('terms'), match('all')]}}, lambda d: has('terms')(d) and has('all')(d)),
            ({'bool': {'must': [match('terms')], 'must_not': [match('all')]}},
             lambda d: has('terms')(d) and not has('all')(d)),
            ({'bool': {'should': [match('terms'), match('index')]}}, has('terms', 'index')),
            ({'bool': {'should': [match('terms'), {'term': {'year': 2008}}]}},
             lambda d: has('terms')(d) or d['year'] == 2008),
            ({'bool': {'should': [{'term': {'year': 2008}}, {'range': {'year': {'lt': 2001}}}]}},
             lambda d: d['year'] in (2008, 2000)),
            ({'bool': {'filter': {'term': {'kind': 'odd'}}, 'should': match('terms')}}, lambda d: d['kind'] == 'odd'),
            ({'bool': {'filter': {'term': {'kind': 'odd'}}, 'should': match('terms'), 'minimum_should_match': 1}},
             lambda d: d['kind'] == 'odd' and has('terms')(d)),
            ({'bool': {'filter': {'term': {'kind': 'odd'}},
                       'should': {'match': {'text': {'query': 'all terms', 'operator': 'and'}}}}},
             lambda d: d['kind'] == 'odd'),
            ({'bool': {'filter': {'term': {'kind': 'odd'}}, 'must_not': match('terms')}},
             lambda d: d['kind'] == 'odd' and not has('terms')(d)),
            ({'bool': {'must_not': match('terms')}}, lambda d: not has('terms')(d)),
            ({'bool': {'must_not': {'term': {'kind': 'odd'}}}}, lambda d: d['kind'] != 'odd'),
            ({'bool': {'must_not': {'match_all': {}}}}, lambda d: False),
            ({'bool': {'must_not': {'match_none': {}}}}, lambda d: True),
            ({'bool': {'must_not': {'bool': {'must': match('terms'), 'filter': {'term': {'kind': 'odd'}}}}}},
             lambda d: not (has('terms')(d) and d['kind'] == 'odd')),
            ({'bool': {'must': [match('terms'), {'match_none': {}}]}}, lambda d: False),
            ({'bool': {'must': match('terms'), 'should': [{'match_all': {}}, match('all')]}}, has('terms')),
            ({'bool': {'should': [{'match_all': {}}, match('all')]}}, lambda d: True),
            ({'bool': {'must': {'bool': {'should': [
                {'bool': {'must': match('terms'), 'filter': {'range': {'year': {'gte': 2007}}}}},
                {'bool': {'must': match('index'), 'must_not': {'term': {'kind': 'even'}}}}]}}}},
             lambda d: has('terms')(d) and d['year'] >= 2007 or has('index')(d) and d['kind'] != 'even'),
            ({'bool': {'must': [{'match': {'text': '?!,'}}]}}, lambda d: False),
            ({'match': {'text': 'AND OR (terms) +"-x'}}, has('terms', 'and', 'or', 'x')),
            ({'bool': {'must': [{'match': {'text': 'OR: (terms) AND^2 \\'}}, {'match': {'text': 'and'}}]}},
             lambda d: has('terms', 'or', 'and')(d) and has('and')(d)),
        ]:
            with self.subTest(query=q):
                self.assertEqual(self.found(q), by(condition))

    def test_scores_of_bool_are_sums(self):
        score = lambda q: {h['_id']: h['_score'] for h in self.search({'query': q, 'size': 100})['hits']['hits']}
        a, b = score({'match': {'text': 'terms'}}), score({'match': {'text': 'all'}})
        both = score({'bool': {'must': {'match': {'text': 'terms'}}, 'should': {'match': {'text': 'all'}}}})
        for i, s in both.items():
            self.assertAlmostEqual(s, a[i] + b.get(i, 0), 5)
        boosted = score({'match': {'text': {'query': 'terms', 'boost': 2.5}}})
        for i, s in boosted.items():
            self.assertAlmostEqual(s, 2.5 * a[i], 5)

    def test_pages_and_sources(self):
        q = {'match': {'text': 'terms index all'}}
        whole = ids(self.search({'query': q, 'size': 100}))
        for start in range(0, 9, 2):
            self.assertEqual(ids(self.search({'query': q, 'from': start, 'size': 2})), whole[start:start + 2])
        everything = ids(self.search({'size': 100}))
        self.assertEqual(everything, [d['id'] for d in DOCUMENTS])
        self.assertEqual(ids(self.search({'from': 4, 'size': 3})), everything[4:7])
        self.assertEqual(ids(self.search({'from': 50})), [])
        self.assertEqual(ids(self.search({'size': 0, 'query': q})), [])
        values = ['kind', 'tenant', 'year']
        for source, names in [(True, values + ['text', 'title']), (False, None), (['title'], ['title']),
                              ('text', ['text']), ({'includes': ['title', 'text']}, ['text', 'title']),
                              (['year', 'title'], ['title', 'year']), ('*', values + ['id', 'text', 'title']),
                              ({'excludes': ['text', 'kind']}, ['id', 'tenant', 'title', 'year']),
                              ({'includes': 'kind'}, ['kind']), ({'excludes': 'title'}, values + ['id', 'text'])]:
            names = sorted(names) if names else None
            hit = self.search({'query': q, 'size': 1, '_source': source})['hits']['hits'][0]
            self.assertEqual(sorted(hit['_source']) if '_source' in hit else None, names, source)
        self.assertNotIn('total', self.search({'query': q, 'track_total_hits': False})['hits'])
        a = self.server.get('/docs/_search?q=%2Bterms+-more&size=100&_source=false').json
        self.assertEqual(set(ids(a)), self.found({'query_string': {'query': '+terms -more'}}))

    def test_highlight(self):
        a = self.search({'query': {'match': {'text': 'script text'}}, 'size': 1,
                         'highlight': {'fields': {'text': {}, 'title': {}}}})
        self.assertEqual(a['hits']['hits'][0]['highlight'],
                         {'text': ['a <<em>script</em>>alert(1)</<em>script</em>> of <em>text</em> & "quotes"']})
        a = self.search({'query': {'match': {'text': 'script'}}, 'size': 1, 'highlight': {
            'encoder': 'html', 'pre_tags': ['<b>'], 'post_tags': ['</b>'],
            'fields': {'text': {'number_of_fragments': 0}}}})
        self.assertEqual(a['hits']['hits'][0]['highlight']['text'],
                         ['a &#60;<b>script</b>&#62;alert(1)&#60;/<b>script</b>&#62; of text &#38; &#34;quotes&#34;'])

    def test_aggregations(self):
        a = self.search({'query': {'match': {'text': 'terms'}}, 'size': 0, 'aggs': {
            'kinds': {'terms': {'field': 'kind'}}, 'years': {'histogram': {'field': 'year', 'interval': 2}},
            'few': {'terms': {'field': 'year', 'size': 2, 'order': {'_key': 'asc'}}}}})['aggregations']
        docs = [d for d in DOCUMENTS if 'terms' in words_of(d)]
        count = lambda of: {k: sum(of(d) == k for d in docs) for k in {of(d) for d in docs}}
        self.assertEqual({b['key']: b['doc_count'] for b in a['kinds']['buckets']}, count(lambda d: d['kind']))
        self.assertEqual({b['key']: b['doc_count'] for b in a['years']['buckets'] if b['doc_count']},
                         count(lambda d: d['year'] // 2 * 2))
        self.assertEqual([b['key'] for b in a['years']['buckets']], list(range(2000, 2010, 2)))
        self.assertEqual([b['key'] for b in a['few']['buckets']], sorted(d['year'] for d in docs)[:2])
        self.assertEqual(a['few']['sum_other_doc_count'], len(docs) - 2)
        a = self.search({'size': 0, 'aggs': {'kinds': {'terms': {'field': 'kind'}}}})
        self.assertEqual([b['doc_count'] for b in a['aggregations']['kinds']['buckets']], [5, 5])

    def test_msearch(self):
        bodies = [{'query': {'match': {'text': 'terms'}}}, {'query': {'match': {'nope': 'x'}}},
            {'query': {'match_all': {}}},
                  {'query': {'query_string': {'query': '(terms'}}}, {'size': -1},
                      {'query': {'match': {'text': 'index'}}}]
        text = ''.join(json.dumps({'index': 'docs'} if i % 2 else {}) + '\n' + json.dumps(b) + '\n'
                       for i, b in enumerate(bodies))
        a = self.server.ask('POST', '/docs/_msearch', text, {'Content-Type': 'application/x-ndjson'}).json['responses']
        self.assertEqual([r['status'] for r in a], [200, 400, 200, 400, 400, 200])
        for i in (0, 2, 5):
            self.assertEqual(a[i]['hits'], self.search(bodies[i])['hits'])
        self.assertEqual((a[1]['error']['line'], a[4]['error']['line']), (4, 10))
        bad = '{}\n{"query":\n{}\n{}\n'
        a = self.server.post('/docs/_msearch', bad).json['responses']
        self.assertEqual([r['status'] for r in a], [400, 200])
        self.assertEqual(self.server.post('/docs/_msearch', '{}\n').status, 400)
        self.assertEqual(self.server.post('/docs/_msearch', '').status, 400)
        self.assertEqual(self.server.post('/_msearch', '{"index":"docs"}\n{}\n{"index":"more"}\n{}\n').status, 400)
        self.assertEqual(self.server.post('/_msearch', '{}\n{}\n').status, 400)
        self.assertEqual(self.server.post('/_msearch', '{"index":"more"}\n{}\n').json['responses'][0]['status'], 200)

    def test_documents(self):
        a = self.server.get('/docs/_doc/d04').json
        self.assertEqual((a['found'], a['_source']['text']), (True, DOCUMENTS[4]['text']))
        a = self.server.get('/docs/_doc/none')
        self.assertEqual((a.status, a.json['found']), (404, False))
        self.assertEqual(self.server.ask('HEAD', '/docs/_doc/d04').status, 200)
        self.assertEqual(self.server.ask('HEAD', '/docs/_doc/none').status, 404)
        self.assertEqual(self.server.get('/docs/_source/d04').json,
                         {k: v for k, v in DOCUMENTS[4].items() if k != 'id'})
        a = self.server.post('/docs/_mget', {'ids': ['d01', 'none', 'd02']}).json['docs']
        self.assertEqual([d['found'] for d in a], [True, False, True])
        a = self.server.post('/_mget', {'docs': [{'_index': 'docs', '_id': 'd01', '_source': ['title']}]}).json['docs']
        self.assertEqual(a[0]['_source'], {'title': 'Title 1'})

    def test_information(self):
        self.assertEqual(self.server.get('/').json['tagline'], 'You Know, for Search')
        self.assertEqual(self.server.ask('HEAD', '/docs').status, 200)
        self.assertEqual(self.server.ask('HEAD', '/nope').status, 404)
        self.assertEqual(self.server.get('/docs/_mapping').json['docs']['mappings']['properties']['year'],
            {'type': 'long'})
        self.assertEqual(self.server.get('/_cat/indices?format=json').json[0]['docs.count'], '10')
        self.assertRegex(self.server.get('/_cat/indices').body.decode(), r'(?m)^green open docs \w+ 1 0 10 0 ')
        self.assertEqual(self.server.get('/_cluster/health').json['status'], 'green')
        self.assertEqual(self.server.post('/docs/_refresh', '').status, 200)
        for accept in ['application/vnd.elasticsearch+json; compatible-with=8', 'application/json']:
            a = self.server.ask('GET', '/', None, {'Accept': accept})
            self.assertEqual(a.headers['Content-Type'].replace(' ', ''), accept.replace(' ', ''))
        a = self.server.get('/docs/_explain/d01')
        self.assertEqual((a.status, a.headers['X-Elastic-Product']), (404, 'Elasticsearch'))

    def test_figures_are_those_of_the_documents(self):
        for q in [{'match_all': {}}, {'match': {'text': 'terms'}}, {'term': {'kind': 'odd'}},
                  {'match': {'text': 'zebra'}},
                  {'bool': {'must': {'match': {'text': 'terms'}}, 'filter': {'range': {'year': {'gt': 2006}}}}}]:
            metrics = ['min', 'max', 'sum', 'avg', 'stats', 'value_count', 'cardinality']
            aggs = {m: {m: {'field': 'year'}} for m in metrics}
            aggs['kinds'] = {'cardinality': {'field': 'kind'}}
            aggs['p'] = {'percentiles': {'field': 'year', 'percents': [0, 50, 99.5, 100]}}
            aggs['usual'] = {'percentiles': {'field': 'year'}}
            aggs['terms'] = {'terms': {'field': 'kind'}}
            a = self.search({'query': q, 'size': 100, 'aggs': aggs})
            by_id = {d['id']: d for d in DOCUMENTS}
            found = [by_id[i] for i in ids(a)]
            years = sorted(d['year'] for d in found)
            got = a['aggregations']
            n = len(years)
            want = {'min': years[0] if n else None, 'max': years[-1] if n else None, 'sum': sum(years),
                    'avg': sum(years) / n if n else None, 'value_count': n, 'cardinality': len(set(years))}
            self.assertEqual({m: got[m]['value'] for m in want}, want, q)
            self.assertEqual(got['stats'], {'count': n, **{m: want[m] for m in ['min', 'max', 'avg', 'sum']}})
            self.assertEqual(got['kinds'], {'value': len({d['kind'] for d in found})})
            self.assertEqual(sum(b['doc_count'] for b in got['terms']['buckets']), n)
            self.assertEqual(list(got['p']['values']), ['0.0', '50.0', '99.5', '100.0'])
            self.assertEqual(list(got['usual']['values']), ['1.0', '5.0', '25.0', '50.0', '75.0', '95.0', '99.0'])
            rank = lambda p: max(0, -(-int(p * n * 10) // 1000) - 1)
            self.assertEqual([got['p']['values'][k] for k in got['p']['values']],
                             [years[rank(p)] if n else None for p in [0, 50, 99.5, 100]], q)

    def test_results_come_in_the_order_of_attributes(self):
        by_id = {d['id']: d for d in DOCUMENTS}
        for q in [{'match_all': {}}, {'match': {'text': 'terms'}}, {'term': {'kind': 'odd'}}]:
            scores = {h['_id']: h['_score'] for h in self.search({'query': q, 'size': 100})['hits']['hits']}
            docids = {d['id']: i for i, d in enumerate(DOCUMENTS)}
            for sort, key in [
                    ('year', lambda i: by_id[i]['year']), ([{'year': 'desc'}], lambda i: -by_id[i]['year']),
                    ([{'year': {'order': 'desc', 'missing': '_last'}}, '_score'], lambda i: -by_id[i]['year']),
                    ([{'kind': {'order': 'asc'}}, {'year': 'desc'}, {'_score': 'desc'}, {'_doc': {'order': 'asc'}}],
                     lambda i: (by_id[i]['kind'], -by_id[i]['year']))]:
                want = sorted(scores, key=lambda i: (key(i), -scores[i], docids[i]))
                a = self.search({'query': q, 'size': 100, 'sort': sort})
                self.assertEqual(ids(a), want, (q, sort))
                self.assertIsNone(a['hits']['max_score'])
                for h in a['hits']['hits']:
                    year = h['sort'][1 if len(sort) == 4 and isinstance(sort, list) else 0]
                    self.assertEqual(year, by_id[h['_id']]['year'])
                    self.assertEqual(h['_score'], scores[h['_id']] if '_score' in str(sort) else None)
                page = self.search({'query': q, 'size': 3, 'from': 2, 'sort': sort})
                self.assertEqual(ids(page), want[2:5])

    def test_pages_go_on_behind_the_sort_of_the_last_hit(self):
        for sort in ['year', [{'kind': 'asc'}, {'year': 'desc'}], [{'kind': 'desc'}, '_score'], ['_score', '_doc'],
                     [{'tenant': 'asc'}, '_score', '_doc']]:
            for q in [{'match': {'text': 'terms index all'}}, {'bool': {'filter': {'term': {'kind': 'odd'}}}},
                      {'match': {'text': 'zebra'}}]:
                with self.subTest(sort=sort, query=q):
                    whole, parts = ids(self.search({'query': q, 'sort': sort, 'size': 100})), []
                    body = {'query': q, 'sort': sort, 'size': 2}
                    hits = self.search(body)['hits']['hits']
                    while hits:
                        self.assertEqual(len(hits[-1]['sort']), len(sort) + 1 if isinstance(sort, list) else 2)
                        parts += [h['_id'] for h in hits]
                        a = self.search({**body, 'search_after': hits[-1]['sort']})['hits']
                        self.assertEqual(a['total']['value'], len(whole))
                        hits = a['hits']
                    self.assertEqual(parts, whole)
        last = self.search({'sort': ['year'], 'size': 2})['hits']['hits'][-1]['sort']
        self.assertEqual(last[0], 2001)
        self.assertEqual(ids(self.search({'sort': ['year'], 'size': 1, 'search_after': last[1:]})), ['d02'])
        self.search({'sort': ['kind'], 'size': 1, 'search_after': last}, 400)
        self.search({'sort': ['year'], 'size': 1, 'search_after': [0, last[1][:-2]]}, 400)

    def test_aggregations_in_aggregations(self):
        for q in [{'match_all': {}}, {'match': {'text': 'terms index'}}, {'match': {'text': 'zebra'}},
                  {'bool': {'must': {'match': {'text': 'terms'}}, 'filter': {'range': {'year': {'gt': 2002}}}}}]:
            metrics = {m: {m: {'field': 'year'}} for m in ['min', 'max', 'sum', 'avg', 'stats', 'value_count']}
            below = {**metrics, 'inner': {'terms': {'field': 'kind'}}}
            ranges = [{'to': 2003}, {'from': 2003, 'to': 2006, 'key': 'mid'}, {'from': 2005}, {}]
            a = self.search({'query': q, 'size': 100, 'aggs': {
                'terms': {'terms': {'field': 'tenant'}, 'aggs': below},
                'years': {'histogram': {'field': 'year', 'interval': 3}, 'aggs': below},
                'ranges': {'range': {'field': 'year', 'ranges': ranges}, 'aggs': {**below, 'deep': {
                    'terms': {'field': 'kind'}, 'aggs': {'least': {'min': {'field': 'year'}}}}}},
                'keyed': {'range': {'field': 'year', 'ranges': ranges, 'keyed': True}},
                'odd': {'filter': {'term': {'kind': 'odd'}}, 'aggs': below},
                'named': {'filters': {'filters': {'o': {'term': {'kind': 'odd'}}, 'all': {'match_all': {}}}},
                          'aggs': below},
                'unnamed': {'filters': {'filters': [{'term': {'kind': 'odd'}}, {'match_none': {}}]}},
            }})
            by_id = {d['id']: d for d in DOCUMENTS}
            found, got = [by_id[i] for i in ids(a)], a['aggregations']

            def check(bucket, docs):
                years = [d['year'] for d in docs]
                self.assertEqual(bucket['doc_count'], len(docs), q)
                n = len(years)
                want = {'min': min(years) if n else None, 'max': max(years) if n else None, 'sum': sum(years),
                        'avg': sum(years) / n if n else None, 'value_count': n}
                self.assertEqual({m: bucket[m]['value'] for m in want}, want)
                self.assertEqual(bucket['stats']['count'], n)
                self.assertEqual({b['key']: b['doc_count'] for b in bucket['inner']['buckets']},
                                 {k: sum(d['kind'] == k for d in docs) for k in {d['kind'] for d in docs}})

            for b in got['terms']['buckets']:
                check(b, [d for d in found if d['tenant'] == b['key']])
            self.assertEqual(sum(b['doc_count'] for b in got['terms']['buckets']), len(found))
            for b in got['years']['buckets']:
                check(b, [d for d in found if b['key'] <= d['year'] < b['key'] + 3])
            keys = ['*-2003.0', 'mid', '2005.0-*', '*-*']
            self.assertEqual([b['key'] for b in got['ranges']['buckets']], keys)
            for key, r, b in zip(keys, ranges, got['ranges']['buckets']):
                docs = [d for d in found if r.get('from', 0) <= d['year'] < r.get('to', 9999)]
                check(b, docs)
                self.assertEqual((b.get('from'), b.get('to')), (r.get('from'), r.get('to')))
                self.assertEqual({x['key']: x['least']['value'] for x in b['deep']['buckets']},
                                 {k: min(d['year'] for d in docs if d['kind'] == k) for k in {d['kind'] for d in docs}})
                self.assertEqual(got['keyed']['buckets'][key]['doc_count'], len(docs))
            odd = [d for d in found if d['kind'] == 'odd']
            check(got['odd'], odd)
            check(got['named']['buckets']['o'], odd)
            check(got['named']['buckets']['all'], found)
            self.assertEqual([b['doc_count'] for b in got['unnamed']['buckets']], [len(odd), 0])

    def test_a_post_filter_leaves_aggregations_alone(self):
        for q in [{'match_all': {}}, {'match': {'text': 'terms'}}, {'term': {'tenant': 'a'}}]:
            aggs = {'kinds': {'terms': {'field': 'kind'}}, 'odd': {'filter': {'term': {'kind': 'odd'}}}}
            whole = self.search({'query': q, 'size': 100, 'aggs': aggs})
            part = self.search({'query': q, 'size': 100, 'aggs': aggs, 'post_filter': {'term': {'kind': 'odd'}}})
            self.assertEqual(part['aggregations'], whole['aggregations'])
            odd = [i for i in ids(whole) if int(i[1:]) % 2]
            self.assertEqual(ids(part), odd)
            self.assertEqual(part['hits']['total']['value'], len(odd))

    def test_one_result_a_value(self):
        for q in [{'match_all': {}}, {'match': {'text': 'terms index all'}}, {'match': {'text': 'zebra'}},
                  {'term': {'tenant': 'a'}}]:
            for field, sort in [('kind', None), ('year', None), ('kind', ['year']), ('tenant', [{'year': 'desc'}])]:
                more = {'sort': sort} if sort else {}
                whole = self.search({'query': q, 'size': 100, **more})['hits']
                groups = {}
                for h in whole['hits']:
                    groups.setdefault(h['_source'][field], []).append(h)
                got = self.search({'query': q, 'size': 100, 'collapse': {
                    'field': field, 'inner_hits': {'name': 'others', 'size': 2}}, **more})['hits']
                self.assertEqual([h['_id'] for h in got['hits']], [g[0]['_id'] for g in groups.values()])
                self.assertEqual(got['total'], whole['total'])
                for h, (value, group) in zip(got['hits'], groups.items()):
                    self.assertEqual(h['fields'], {field: [value]})
                    inner = h['inner_hits']['others']['hits']
                    self.assertEqual(inner['total']['value'], len(group))
                    self.assertEqual([(x['_id'], x['_source']) for x in inner['hits']],
                                     [(x['_id'], x['_source']) for x in group[:2]])
                one = self.search({'query': q, 'size': 1, 'from': 1, 'collapse': {'field': field},
                                   **more})['hits']['hits']
                self.assertEqual([h['_id'] for h in one], [g[0]['_id'] for g in list(groups.values())[1:2]])

    def test_what_a_hit_shows(self):
        a = self.search({'query': {'match': {'text': 'terms'}}, 'size': 3, 'explain': True, 'version': True,
                         'seq_no_primary_term': True, 'fields': ['year', {'field': 'kind'}], '_source': False})
        for h in a['hits']['hits']:
            d = DOCUMENTS[int(h['_id'][1:])]
            self.assertEqual(h['fields'], {'year': [d['year']], 'kind': [d['kind']]})
            self.assertEqual((h['_version'], h['_seq_no'], h['_primary_term']), (1, 0, 1))
            e = h['_explanation']
            self.assertEqual(e['value'], h['_score'])
            self.assertAlmostEqual(sum(x['value'] for x in e['details']), h['_score'], 5)
        a = self.search({'size': 1, 'docvalue_fields': ['*'], 'explain': True})['hits']['hits'][0]
        self.assertEqual(sorted(a['fields']), ['kind', 'tenant', 'year'])
        self.assertEqual(a['_explanation']['value'], 1)

    def test_phrases_are_found_in_a_row_or_within_a_slop(self):
        path = build('phrases', DOCUMENTS, '--analyzer=simple', '--positions')
        with_positions = Server('docs=' + path, '--engine=cpu')

        def rows(text):
            return [re.findall(r'\w+', s.lower()) for s in text]

        def holds(d, words, slop):
            first, second = words
            return any(abs(j - i - 1) <= slop for part in rows([d['title'], d['text']])
                       for i, a in enumerate(part) for j, b in enumerate(part) if (a, b) == (first, second))
        try:
            for words, slop in [('inverted index', 0), ('index inverted', 0), ('index inverted', 2), ('all terms', 0),
                                ('terms terms', 0), ('terms of', 3), ('title of', 9)]:
                for q in [{'match_phrase': {'text': words if not slop else {'query': words, 'slop': slop, 'boost': 2}}},
                          {'bool': {'must': [{'match_phrase': {'title': {'query': words, 'slop': slop}}}]}},
                          {'query_string': {'query': '"%s"~%d' % (words, slop)}}]:
                    a = with_positions.post('/docs/_search', {'query': q, 'size': 100})
                    self.assertEqual(a.status, 200, a.body)
                    self.assertEqual(set(ids(a.json)), {d['id'] for d in DOCUMENTS if holds(d, words.split(), slop)}, q)
            one = with_positions.post('/docs/_search', {'query': {'match_phrase': {'text': 'pruning'}}}).json
            self.assertEqual(len(ids(one)), 1)
        finally:
            self.assertEqual(with_positions.stop(), 0)

    def test_words_are_suggested(self):
        a = self.search({'size': 0, 'suggest': {
            'text': 'invrted indxe of', 'one': {'term': {'field': 'text', 'size': 2}},
            'all': {'phrase': {'field': 'text'}}, 'own': {'text': 'index', 'term': {'field': 'text'}}}})
        one, whole, own = (a['suggest'][name] for name in ('one', 'all', 'own'))
        self.assertEqual([(e['text'], e['offset'], e['length'], [(o['text'], o['freq']) for o in e['options']])
                          for e in one],
                         [('invrted', 0, 7, [('inverted', 2)]), ('indxe', 8, 5, [('index', 3)]), ('of', 14, 2, [])])
        self.assertEqual([o['text'] for o in whole[0]['options']], ['inverted index of'])
        self.assertEqual([e['options'] for e in own], [[]])
        for bad in ({'one': {'term': {'field': 'text'}}}, {'text': 'a', 'one': {}}, {'text': 1}, [],
                    {'text': 'a', 'one': {'term': {'field': 'year'}}},
                    {'text': 'a', 'one': {'term': {'field': 'text', 'suggest_mode': 'always'}}},
                    {'text': 'a', 'one': {'completion': {'field': 'text'}}}):
            self.search({'suggest': bad}, 400)

    def test_prefixes_of_keywords_and_phrases(self):
        self.assertEqual(set(self.found({'prefix': {'kind': 'ev'}})), {'d%02d' % i for i in range(0, 10, 2)})
        self.assertEqual(set(self.found({'bool': {'filter': [{'prefix': {'kind': {'value': 'o'}}}]}})),
                         {'d%02d' % i for i in range(1, 10, 2)})
        self.assertEqual(set(self.found({'match_phrase_prefix': {'text': 'compr'}})), {'d01'})
        self.search({'query': {'prefix': {'year': '2'}}}, 400)
        self.search({'query': {'match_phrase_prefix': {'text': {'query': 'a b', 'slop': 1}}}}, 400)

    def test_what_is_not_there_is_refused_by_name_and_place(self):
        for body, at, words in [  # `at`: what stands at the place of the fault
            ({'query': {'match_phrase': {'text': 'a b'}}}, '"a b"', '--positions'),
            ({'query': {'match_phrase': {'text': {'query': 'a b', 'slop': -1}}}}, '-1', 'less than 0'),
            ({'query': {'match_phrase_prefix': {'text': 'a b'}}}, '"a b"', '--positions'),
            ({'query': {'match_bool_prefix': {'text': 'a b'}}}, '{"text"', 'match_bool_prefix'),
            ({'query': {'knn': {}}}, '{}', 'knn'), ({'query': {'nonsense': {}}}, '{}', 'nonsense'),
            ({'query': {'match': {'nope': 'x'}}}, '"x"', 'nope'),
            ({'query': {'match': {'text': {'query': 'x', 'fuzziness': 'AUTO'}}}}, '"AUTO"', 'fuzziness'),
            ({'sort': ['years']}, '"years"', 'year'), ({'search_after': [1]}, '1]', 'cursor'),
            ({'search_after': []}, '[]', 'last hit'), ({'search_after': ['']}, '""', 'cursor'),
            ({'search_after': 'x'}, '"x"', 'last hit'),
            ({'search_after': ['x', 'y'], 'sort': ['_doc']}, None, 'cursor'),
            ({'collapse': {'field': 'yeer'}}, '"yeer"', 'year'), ({'collapse': {}}, '{}', 'field'),
            ({'collapse': {'field': 'kind', 'inner_hits': {'size': 0}}}, '0', 'less than 1'),
            ({'collapse': {'field': 'kind', 'inner_hits': {'from': 1}}}, '1}', 'from'),
            ({'collapse': {'field': 'kind', 'inner_hits': [{}, {}]}}, '[{}', 'one set'),
            ({'sort': ['year'], 'search_after': [1, 2, 'x']}, '[1', '3 values'),
            ({'sort': ['year'], 'search_after': [2000, 'x'], 'from': 1}, '[2000', "'from'"),
            ({'post_filter': {'match': {'text': 'x'}}}, '"x"', 'match'), ({'fields': ['yeer']}, '"yeer"', 'year'),
            ({'aggs': {'a': {'range': {'field': 'kind', 'ranges': [{'to': 1}]}}}}, '{"field"', 'numbers'),
            ({'aggs': {'a': {'range': {'field': 'year', 'ranges': [{'to': 'x'}]}}}}, '{"to"', 'whole number'),
            ({'aggs': {'a': {'range': {'field': 'year'}}}}, '{"field"', 'ranges'),
            ({'aggs': {'a': {'filter': {'match': {'text': 'x'}}}}}, '"x"', 'match'),
            ({'aggs': {'a': {'filters': {'filters': {}}}}}, '{}', 'no filter'),
            ({'aggs': {'a': {'min': {'field': 'year'}, 'aggs': {'b': {'min': {'field': 'year'}}}}}}, '{"b"',
             'buckets'),
            ({'aggs': {'a': {'terms': {'field': 'kind'}, 'aggs': {'b': {'filter': {'match_all': {}}}}}}},
             '{"match_all"', 'below'),
            ({'aggs': {'a': {'terms': {'field': 'kind'}, 'aggs': {'b': {'terms': {'field': 'year'}, 'aggs': {}}}}}},
             '{}}', 'in aggregations'),
            ({'aggs': {'a': {'terms': {'field': 'kind'}, 'aggs': {'b': {'terms': {'field': 'year'}},
                                                                  'c': {'terms': {'field': 'tenant'}}}}}},
             '{"b"', 'at most one'),
            ({'sort': [{'year': 'up'}]}, '"up"', 'asc'), ({'sort': ['_score', 'year']}, '"year"', 'year'),
            ({'sort': [{'year': {'mode': 'avg'}}]}, '"avg"', 'mode'),
            ({'sort': [{'_score': 'asc'}]}, '{"_score"', '_score'),
            ({'rescore': {}}, '{}', 'rescore'), ({'query': {'term': {'text': 'x'}}}, '"x"', 'match'),
            ({'query': {'range': {'year': {'gte': 'now-1d'}}}}, '"now', 'date'),
            ({'query': {'range': {'year': {'gte': 'soon'}}}}, '"soon"', 'soon'),
            ({'query': {'term': {'year': 'x'}}}, '"x"', 'whole number'),
            ({'query': {'terms': {'year': [1, 'x']}}}, '"x"', 'whole number'),
            ({'query': {'range': {'year': {'gte': 1, 'lt': 'x'}}}}, '"x"', 'whole number'),
            ({'query': {'bool': {'filter': [{'term': {'year': {'value': 'x'}}}]}}}, '"x"', 'whole number'),
            ({'_source': ['month']}, '"month"', 'month'),
            ({'query': {'bool': {'filter': {'match': {'text': 'x'}}}}}, '"x"', 'match'),
            ({'aggs': {'a': {'weighted_avg': {'field': 'year'}}}}, '{"field"', 'weighted_avg'),
            ({'aggs': {'a': {'sum': {'field': 'kind'}}}}, '{"field"', 'kind'),
            ({'aggs': {'a': {'percentiles': {'field': 'year', 'percents': [101]}}}}, '{"field"', '0 to 100'),
            ({'aggs': {'a': {'terms': {'field': 'x'}}}}, '{"field"', 'x'),
            ({'query': {'bool': {'should': [], 'minimum_should_match': '75%'}}}, '"75%"', '0 and 1'),
            ({'query': {'match': {'text': 'x'}, 'term': {}}}, '{"match"', 'one'), ({'from': -1}, '-1', '-1'),
            ({'size': 1e9}, '1000000000.0', 'fraction'), ({'highlight': {'fields': {'year': {}}}}, '{}', 'year'),
            ({'query': 3}, '3', 'one field'), ({'query': {'query_string': {'query': 'a AND'}}}, '"a AND"', 'column'),
        ]:
            with self.subTest(body=body):
                e = self.search(body, 400)['error']
                self.assertIn(words, e['reason'])
                if at:
                    self.assertEqual((e['line'], e['col']), (1, json.dumps(body).index(at) + 1), e)
        for path in ['/docs/_search?filter_path=hits', '/docs/_search?size=x', '/docs/_search?q=(',
            '/docs/_search?scroll=1m',
                     '/docs/_search?timeout=soon', '/docs,more/_search', '/_search', '/doc*/_search']:
            a = self.server.get(path)
            self.assertEqual(a.status, 400, path)
            self.assertTrue(a.json['error']['reason'])
        a = self.server.get('/nope/_search')
        self.assertEqual((a.status, a.json['error']['type'], a.json['error']['index']), (404,
            'index_not_found_exception', 'nope'))
        deep = '{"query":' + '{"bool":{"must":' * 60 + '{"match_all":{}}' + '}}' * 60 + '}'
        self.assertEqual(self.server.post('/docs/_search', deep).status, 400)


if __name__ == '__main__':
    main()
