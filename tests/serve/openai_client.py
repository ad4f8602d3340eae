#!/usr/bin/env python3
"""OpenAI's client, as PyPI has it, unmodified."""
import unittest

from serving import DOCUMENTS, Server, build, main, need

need('openai')

import openai  # noqa: E402


class Client(unittest.TestCase):
    def test_a_vector_store(self):
        with Server('docs=' + build(), '--engine=cpu') as s:
            client = openai.OpenAI(base_url='http://127.0.0.1:%d/v1' % s.port, api_key='x', max_retries=0)
            page = client.vector_stores.search('docs', query='inverted index', max_num_results=2,
                                               filters={'type': 'gte', 'key': 'year', 'value': 2000})
            self.assertEqual(len(page.data), 2)
            d = DOCUMENTS[int(page.data[0].file_id[1:])]
            self.assertEqual((page.data[0].content[0].text, page.data[0].attributes['year']), (d['text'], d['year']))
            with self.assertRaises(openai.BadRequestError) as e:
                client.vector_stores.search('docs', query='x', rewrite_query=True)
            self.assertEqual(e.exception.param, 'rewrite_query')
            with self.assertRaises(openai.NotFoundError):
                client.vector_stores.search('nowhere', query='x')


if __name__ == '__main__':
    main()
