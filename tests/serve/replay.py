#!/usr/bin/env python3
"""`gpuidx replay --url`: a run through a server is that of the index, byte for byte."""
import json
import os
import random
import subprocess
import threading
import unittest

from serving import DOCUMENTS, FOLDER, GPUIDX, Server, build, main

R = random.Random(5)
WORDS = ['terms', 'index', 'lists', 'map', 'documents', 'an', 'of', 'queries', 'w1', 'w2', 'w3', 'gr\u00fc\u00dfe']
MORE = [{'id': 'x%03d' % i, 'text': ' '.join(R.choices(WORDS, k=R.randrange(1, 30))), 'year': i, 'tenant': 'ab'[i % 2]}
         for i in range(300)]


def has_url():
    p = subprocess.run([GPUIDX, 'replay', '--url=http://127.0.0.1:1/x', os.devnull], capture_output=True, text=True)
    return 'libcurl' not in p.stderr


@unittest.skipUnless(has_url(), 'this build has no libcurl')
class Replay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = build('replayed', DOCUMENTS + MORE)
        cls.server = Server('docs=' + cls.path, '--engine=cpu', '--threads=2')
        cls.url = 'http://127.0.0.1:%d/docs' % cls.server.port
        cls.log = os.path.join(FOLDER, 'log.tsv')
        with open(cls.log, 'w', encoding='utf-8') as f:
            f.write('qid\tquery\tfilter\n')
            for i in range(400):
                words = ' '.join(R.choices(WORDS + ['"x', 'none\\'], k=R.randrange(0, 6)))
                f.write('q%d\t%s\t%s\n' % (i, words, R.choice(['', '', 'year:>%d' % R.randrange(300), 'tenant:a'])))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def replay(self, *flags, code=0, log=None):
        p = subprocess.run([GPUIDX, 'replay', *flags, log or self.log], capture_output=True, timeout=300)
        self.assertEqual(p.returncode, code, p.stderr)
        return p

    def test_runs_are_those_of_the_index(self):
        for flags in [[], ['-k', '3'], ['-k', '1000', '--run-tag=a%b&c'], ['--op=and'],
                      ['--scorer=bm25', '--k1=25', '--b=1'],
                      ['--filter=year:<200'], ['--filter=tenant:a', '--op=and-or']]:
            theirs = self.replay('--run=-', '--report=/dev/null', '--engine=cpu', *flags, self.path).stdout
            self.assertGreater(theirs.count(b'\n'), 100)
            for more in [[], ['--threads=4'], ['--batch=7', '--threads=3'], ['--rate=5000', '--threads=8'],
                         ['--batch=1000'], ['--warmup=50', '--runs=2'], ['--rate=4000', '--arrivals=poisson'],
                         ['--rate=9000', '--batch=4']]:
                ours = self.replay('--url=' + self.url, '--run=-', '--report=/dev/null', *flags, *more).stdout
                self.assertEqual(ours, theirs, (flags, more))

    def test_vectors_of_scores_near_each_other(self):
        """Scores of all sizes are printed alike."""
        for k1, b in [(0.001, 0), (1000, 1), (0, 0.5), (25, 1)]:
            flags = ['-k', '100', '--k1=%g' % k1, '--b=%g' % b]
            self.assertEqual(self.replay('--url=' + self.url, '--run=-', '--report=/dev/null', *flags).stdout,
                             self.replay('--run=-', '--report=/dev/null', '--engine=cpu', *flags, self.path).stdout)

    def test_the_report(self):
        p = self.replay('--url=' + self.url, '--report=-', '-q', '--threads=2', '--runs=2', '--deadline=60000')
        r = json.loads(p.stdout)
        self.assertEqual((r['queries'], r['failed'], r['late'], r['threads']), (800, 0, 0, 2))
        self.assertLessEqual(r['latency_us']['p50'], r['latency_us']['p99'])
        p = self.replay('--url=' + self.url, '-n', '1000')
        self.assertIn(b'queries/s', p.stdout)

    def test_a_rate_is_kept_and_latency_counts_from_the_due_moment(self):
        p = self.replay('--url=' + self.url, '--rate=400', '--report=-', '-q')
        self.assertGreaterEqual(json.loads(p.stdout)['seconds'], 0.95)

    def test_faults(self):
        bad = os.path.join(FOLDER, 'bad.tsv')
        with open(bad, 'w', encoding='utf-8') as f:
            f.write('qid\tquery\tfilter\n1\tterms\t\n2\tterms\tnope:1\n3\tindex\t\n')
        self.assertIn(b'nope', self.replay('--url=' + self.url, log=bad, code=3).stderr)
        for batch in ['1', '3']:
            p = self.replay('--url=' + self.url, '--on-error=skip', '--run=-', '--report=/dev/null', '--batch=' + batch,
                            log=bad)
            self.assertEqual({line.split()[0] for line in p.stdout.splitlines()}, {b'1', b'3'})
        self.replay('--url=http://127.0.0.1:%d/nowhere' % self.server.port, code=5)
        self.replay('--url=http://127.0.0.1:1/docs', code=5)
        for flags in [['--url=127.0.0.1/docs'], ['--url=http://127.0.0.1'], ['--url=http://127.0.0.1/'],
                      ['--url=http://127.0.0.1/a/b'], ['--url=file:///etc/passwd'], ['--url=' + self.url, '--verify'],
                      ['--url=' + self.url, '--engine=cpu'],
                      ['--url=' + self.url, self.path], []]:
            self.replay(*flags, code=2)

    def test_a_token_comes_from_the_environment(self):
        tokens = os.path.join(FOLDER, 'replay-tokens.json')
        with open(tokens, 'w', encoding='utf-8') as f:
            json.dump({'tokens': [{'name': 'r', 'token': 'the-token-of-a-replay'}]}, f)
        with Server('docs=' + self.path, '--engine=cpu', '--tokens=' + tokens) as s:
            url = '--url=http://127.0.0.1:%d/docs' % s.port
            command = [GPUIDX, 'replay', url, self.log]
            self.assertNotEqual(subprocess.run(command, capture_output=True).returncode, 0)
            env = {**os.environ, 'GPUIDX_TOKEN': 'the-token-of-a-replay'}
            self.assertEqual(subprocess.run(command, capture_output=True, env=env).returncode, 0)

    def test_a_server_that_ends(self):
        s = Server('docs=' + self.path, '--engine=cpu')
        threading.Timer(0.5, s.stop).start()
        p = subprocess.run([GPUIDX, 'replay', '--url=http://127.0.0.1:%d/docs' % s.port, '-n', '10000000',
                            '--threads=2',
                            self.log], capture_output=True, timeout=120)
        self.assertNotEqual(p.returncode, 0)

    def test_lines_of_a_run_from_the_server(self):
        ask = lambda arguments, **more: self.server.post('/v1/docs/search' + arguments,
                                                         {'query': 'terms', 'k': 3, **more})
        a = ask('?format=trec&tag=me', qid='7')
        self.assertEqual([line.split()[0::5] for line in a.body.decode().splitlines()], [['7', 'me']] * 3)
        self.assertEqual(a.headers['Content-Type'], 'text/plain; charset=utf-8')
        for arguments in ['?format=xml', '?tag=x', '?format=trec&tag=', '?format=trec&tag=a%20b', '?k=3']:
            self.assertEqual(ask(arguments).status, 400, arguments)
        self.assertEqual(ask('?format=json').json['hits'][0]['rank'], 1)
        lines = lambda more: {tuple(line.split()[2:5:2]) for line in
                              ask('?format=trec', **{'k': 1000, **more}).body.decode().splitlines()}
        self.assertEqual(lines({'sort': 'year'}), lines({}))  # ids and scores; only the order differs


if __name__ == '__main__':
    main()
