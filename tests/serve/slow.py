#!/usr/bin/env python3
"""Clients that send slowly, that do not read, and that send garbage, beside others that ask as usual.

    slow.py [CLIENTS [SECONDS]]

Headers come a byte at a time, and bodies; answers are not read; connections say nothing. Each must be closed once
--slow-timeout has passed, and the others are answered meanwhile. With CLIENTS given, the latencies of the others
before and beside them are printed, and the median must not be more than twice as long."""
import random
import select
import signal
import socket
import statistics
import sys
import threading
import time
import unittest

from serving import DOCUMENTS, Server, build, main

CLIENTS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 0
SECONDS = float(sys.argv.pop(1)) if CLIENTS and len(sys.argv) > 1 else 6
SLOW, STEP = 2, 0.25  # --slow-timeout, and seconds from one byte to the next
POST = b'POST /v1/docs/search HTTP/1.1\r\nHost: localhost\r\n'
HEAD = POST + b'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n'
GARBAGE = [b'\x00' * 100, b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + bytes(range(200)), b'GET\r\n\r\n',
           b'GET / HTTP/9.9\r\n\r\n', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', b'A' * 40000,
           b'GET / HTTP/1.1\r\n' + b'X: y\r\n' * 9000, POST + b'Transfer-Encoding: chunked\r\n\r\nzz\r\n',
           POST + b'Content-Length: -5\r\n\r\n', POST + b'Content-Length: 99999999999999999999\r\n\r\n',
           b'GET /v1 HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n', b'\r\n' * 1000, b'GET /%zz%00 HTTP/1.1\r\n\r\n']


class Slow:
    """One slow client. `rest` is what it still sends, a byte at each step."""

    def __init__(self, port, kind):
        self.kind, self.rest, self.began, self.ended = kind, b'', time.monotonic(), None
        self.socket = socket.socket()
        if kind == 'reader':
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(('127.0.0.1', port))
        body = b'{"query": "terms", "k": 3}'
        if kind == 'header':
            self.rest = HEAD % len(body)
        elif kind == 'body':
            self.socket.sendall(HEAD % 100000)
            self.rest = b'{"query": "' + b'x' * 90000
        elif kind == 'reader':
            body = b'{"query": "large", "fields": ["text"]}'
            self.socket.sendall(HEAD % len(body) + body)
        self.socket.setblocking(False)

    def step(self):
        """false once the server has closed it."""
        try:
            if self.rest:
                self.socket.send(self.rest[:1])
                self.rest = self.rest[1:]
            if self.kind == 'reader':
                readable = select.poll()
                readable.register(self.socket, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
                closed = bool(readable.poll(0))
            else:
                closed = self.socket.recv(65536) == b''
        except BlockingIOError:
            closed = False
        except OSError:
            closed = True
        if closed and self.ended is None:
            self.ended = time.monotonic()
            self.socket.close()
        return not closed


class Tests(unittest.TestCase):
    def ask(self, s, until, latencies, faults):
        c = s.connect()
        while until():
            begin = time.monotonic()
            try:
                a = s.post('/v1/docs/search', {'query': 'terms', 'k': 3}, connection=c)
                if a.status != 200:
                    faults.append(a.body)
            except Exception as e:
                faults.append(repr(e))
                return
            latencies.append(time.monotonic() - begin)
            time.sleep(0.002)
        c.close()

    def test_slow_clients_delay_nobody(self):
        n = CLIENTS or 120
        flags = ['--engine=cpu', '--threads=2', '--slow-timeout=%d' % SLOW, '--idle-timeout=5', '--max-wait=60000',
                 '--timeout=60000']
        large = [{'id': 'l%d' % i, 'title': '', 'text': 'large ' * 200000, 'year': 1, 'kind': 'x', 'tenant': 'c'}
                 for i in range(8)]  # an answer with all of them is more than the kernel takes
        with Server('docs=' + build('slow', DOCUMENTS + large), *flags) as s:
            before, beside, faults = [], [], []
            end = time.monotonic() + (SECONDS if CLIENTS else 0.5)
            self.ask(s, lambda: time.monotonic() < end, before, faults)
            clients = [Slow(s.port, ['header', 'body', 'silent'][i % 3]) for i in range(n)]
            clients += [Slow(s.port, 'reader') for _ in range(20 if CLIENTS else 4)]
            going = [True]
            other = threading.Thread(target=self.ask, args=(s, lambda: going[0], beside, faults))
            other.start()
            limit, open_ones = time.monotonic() + SLOW + 30, clients
            while open_ones and time.monotonic() < limit:
                begin = time.monotonic()
                open_ones = [c for c in open_ones if c.step()]
                time.sleep(max(0, STEP - (time.monotonic() - begin)))
            going[0] = False
            other.join(60)
            self.assertEqual([c.kind for c in open_ones], [])
            self.assertEqual(faults, [])
            self.assertGreater(len(beside), 5)
            self.assertEqual(s.get('/v1').status, 200)
            lasted = [c.ended - c.began for c in clients if c.kind != 'reader']
            self.assertGreater(min(lasted), SLOW - 0.5)
        if CLIENTS:
            def told(x):
                ms = lambda p: 1e3 * sorted(x)[int(p * (len(x) - 1))]
                return 'p50 %.2f, p99 %.2f ms of %d requests' % (ms(.5), ms(.99), len(x))
            print('%d slow clients: %s before them, %s beside them; closed after %.1f to %.1f s' %
                  (n, told(before), told(beside), min(lasted), max(lasted)))
            self.assertLess(statistics.median(beside), 2 * statistics.median(before))

    def test_as_many_requests_at_once_as_the_server_reads_events(self):
        """They come while it stands still, so that it meets all of them together, and no other event follows: no
        connection is idle for too long before the clients give up."""
        request = b'GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n'
        for n in (128, 256):
            with Server('docs=' + build(), '--engine=cpu', '--threads=1', '--idle-timeout=600') as s:
                clients = [socket.create_connection(('127.0.0.1', s.port), timeout=200) for _ in range(n)]
                for c in clients:
                    c.sendall(request)
                    self.assertIn(b' 200 ', c.recv(65536))
                s.process.send_signal(signal.SIGSTOP)
                for c in clients:
                    c.sendall(request)
                s.process.send_signal(signal.SIGCONT)
                for c in clients:
                    self.assertIn(b' 200 ', c.recv(65536))
                for c in clients:
                    c.close()

    def test_garbage_harms_nobody(self):
        r = random.Random(5)
        with Server('docs=' + build(), '--engine=cpu', '--threads=2', '--slow-timeout=%d' % SLOW) as s:
            c = s.connect()
            for i in range(max(120, CLIENTS)):
                data = r.choice(GARBAGE) if i % 2 else bytes(r.randrange(256) for _ in range(r.randrange(1, 600)))
                with socket.create_connection(('127.0.0.1', s.port)) as g:
                    try:
                        g.sendall(data)
                        if i % 5 == 0:
                            g.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')  # a reset
                    except OSError:
                        pass
                if i % 20 == 0:
                    self.assertEqual(s.post('/v1/docs/search', {'query': 'terms'}, connection=c).status, 200)
            c.close()


if __name__ == '__main__':
    main()
