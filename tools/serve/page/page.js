'use strict';
// The page asks /v1 as any client does. Whatever comes from an index becomes text of an element, never markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const MOST_FACETS = 8, SIZE = 10;
  const state = {index: null, chosen: new Map(), cursor: null, shown: 0, asked: 0, ownFilter: false, parts: []};

  function make(tag, text, attributes) {
    const e = document.createElement(tag);
    if (text !== undefined && text !== null)
      e.textContent = text;
    for (const [name, value] of Object.entries(attributes || {}))
      e.setAttribute(name, value);
    return e;
  }

  function say(text, bad) {
    $('state').textContent = text;
    $('state').className = bad ? 'bad' : '';
  }

  async function ask(path, body) {
    const headers = {Accept: 'application/json'};
    if ($('token').value)
      headers.Authorization = 'Bearer ' + $('token').value;
    if (body)
      headers['Content-Type'] = 'application/json';
    const answer = await fetch(path, {method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body)});
    const text = await answer.text();
    let value = null;
    try {
      value = JSON.parse(text);
    } catch (e) {
      throw new Error('the server answered ' + answer.status + ' without JSON');
    }
    if (answer.status === 401)
      $('token-line').hidden = false;
    if (!answer.ok) {
      const e = value.error || {};
      const error = new Error((e.member ? e.member + ': ' : '') + (e.message || e.reason || e || 'status ' + answer.status));
      error.status = answer.status;
      throw error;
    }
    return value;
  }

  // ---- what is asked ----

  const quoted = (text) => '"' + text.replace(/[\\"]/g, '\\$&') + '"';

  // Of each attribute any of the values that are ticked.
  function filterText() {
    const parts = [];
    if ($('filter').value.trim())
      parts.push('(' + $('filter').value.trim() + ')');
    for (const [name, values] of state.chosen)
      if (values.size)
        parts.push('(' + [...values].map((v) => name + ':' + v).join(' OR ') + ')');
    return parts.join(' AND ');
  }

  function facetTexts() {
    const own = state.ownFilter ? '' : ':exclude-own';
    return state.index.attributes.slice(0, MOST_FACETS)
      .map((a) => a.name + (a.type === 'float' ? ':bins=6' : ':8') + own);
  }

  function body(after) {
    const b = {query: $('query').value, k: SIZE, op: $('op').value, snippets: {marks: true}, cursor: true};
    if (filterText())
      b.filter = filterText();
    if ($('sort').value)
      b.sort = $('sort').value;
    if ($('syntax').checked)
      b.syntax = 'boolean';
    if ($('explain').checked && b.query.trim())
      b.explain = true;
    if (after)
      b.after = after;
    else
      Object.assign(b, {facets: facetTexts(), count: true});
    return b;
  }

  // ---- what is shown ----

  // marks: pairs of positions, counted in characters.
  function marked(text, marks) {
    const p = make('p'), characters = Array.from(text);
    let at = 0;
    for (const [begin, end] of marks || []) {
      p.append(characters.slice(at, begin).join(''), make('mark', characters.slice(begin, end).join('')));
      at = end;
    }
    p.append(characters.slice(at).join(''));
    return p;
  }

  function why(e) {
    const box = make('div', null, {class: 'why', tabindex: '0', role: 'group', 'aria-label': 'Why this score'});
    const table = make('table'), head = make('tr');
    for (const h of ['word', 'tf', 'df', 'idf', 'score'])
      head.append(make('th', h));
    table.append(head);
    for (const t of e.terms || []) {
      const row = make('tr');
      for (const v of [t.term, t.tf, t.df, Number(t.idf).toFixed(4), Number(t.score).toFixed(4)])
        row.append(make('td', String(v)));
      table.append(row);
    }
    box.append(table, make('p', e.scorer + ', k1 ' + e.k1 + ', b ' + e.b + ', length ' + e.dl + ' of ' +
                           Number(e.avgdl).toFixed(1) + ' on average', {class: 'about'}));
    return box;
  }

  async function toggleText(item, id) {
    const old = item.querySelector('.text');
    if (old) {
      old.remove();
      return;
    }
    try {
      const d = await ask('/v1/' + encodeURIComponent(state.index.name) + '/doc/' + encodeURIComponent(id));
      const doc = d.doc || d;
      item.append(make('p', typeof doc === 'string' ? doc : doc.contents || doc.text || '(no text is stored)',
                       {class: 'text'}));
    } catch (e) {
      say(e.message, true);
    }
  }

  function showHit(hit) {
    const item = make('li'), title = make('h2'), open = make('button', hit.title || hit.id, {type: 'button'});
    open.addEventListener('click', () => toggleText(item, hit.id));
    title.append(open);
    item.append(title, make('p', hit.rank + ' · ' + hit.id + ' · ' + Number(hit.score).toFixed(4), {class: 'about'}));
    if (hit.snippet)
      item.append(marked(hit.snippet, hit.marks));
    if (hit.explain)
      item.append(why(hit.explain));
    $('hits').append(item);
  }

  function showFacets(facets) {
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
    $('facets').replaceChildren();
    for (const f of facets || []) {
      const chosen = state.chosen.get(f.attribute) || new Set();
      const set = make('fieldset');
      set.append(make('legend', f.attribute));
      const values = f.groups.filter((g) => g.count).map((g) => {
        const text = f.type.startsWith('keyword') ? quoted(g.value) : g.value;
        return {text, shown: g.value, count: g.count};
      });
      for (const text of chosen) // one that is ticked stays, that it can be unticked
        if (!values.some((v) => v.text === text))
          values.push({text, shown: text, count: 0});
      for (const v of values) {
        const label = make('label'), box = make('input', null, {type: 'checkbox'});
        box.checked = chosen.has(v.text);
        box.dataset.key = f.attribute + ':' + v.text;
        box.addEventListener('change', () => {
          const now = state.chosen.get(f.attribute) || new Set();
          if (box.checked)
            now.add(v.text);
          else
            now.delete(v.text);
          state.chosen.set(f.attribute, now);
          search();
        });
        label.append(box, make('span', v.shown, {class: 'name'}), make('span', String(v.count), {class: 'count'}));
        set.append(label);
        if (box.dataset.key === focused)
          setTimeout(() => box.focus(), 0);
      }
      if (values.length)
        $('facets').append(set);
    }
  }

  async function search(after) {
    const asked = ++state.asked, begin = performance.now();
    if (!state.index)
      return;
    const path = '/v1/' + encodeURIComponent(state.index.name) + '/search';
    say(after ? 'More ...' : 'Searching ...');
    try {
      let answer;
      try {
        answer = await ask(path, body(after));
      } catch (e) {
        if (state.ownFilter || !/exclude-own/.test(e.message))
          throw e;
        state.ownFilter = true; // a token with a filter has no facets beside their own conditions
        answer = await ask(path, body(after));
      }
      if (asked !== state.asked)
        return; // a later search has begun
      if (!after) {
        $('hits').replaceChildren();
        state.shown = 0;
        state.matches = answer.matches;
        showFacets(answer.facets);
      }
      answer.hits.forEach(showHit);
      state.shown += answer.hits.length;
      state.cursor = answer.cursor || null;
      $('more').hidden = !state.cursor || state.shown >= state.matches;
      const unknown = answer.unknown && answer.unknown.length ? '; not in the index: ' + answer.unknown.join(', ') : '';
      say(state.matches + (state.matches === 1 ? ' document' : ' documents') + ', searched in ' +
          (answer.seconds * 1e3).toFixed(2) + ' ms, answered in ' + (performance.now() - begin).toFixed(1) + ' ms' +
          unknown);
      const hash = new URLSearchParams();
      for (const name of ['query', 'filter', 'sort'])
        if ($(name).value)
          hash.set(name, $(name).value);
      hash.set('index', state.index.name);
      history.replaceState(null, '', '#' + hash);
    } catch (e) {
      if (asked === state.asked) {
        if (!after)
          $('hits').replaceChildren();
        $('more').hidden = true;
        say(e.message, true);
      }
    }
    showLatency();
  }

  async function showLatency() {
    try {
      const s = await ask('/v1/status');
      const ms = (us) => (us / 1e3).toFixed(us < 10000 ? 2 : 0) + ' ms';
      if (!s.latest)
        return;
      $('latency').textContent = 'Last ' + s.latest + ' requests: half within ' + ms(s.p50_us) + ', 90 % within ' +
        ms(s.p90_us) + ', 99 % within ' + ms(s.p99_us);
      const most = Math.max(...s.buckets.map((b) => b.requests), 1);
      $('bars').replaceChildren(...s.buckets.map((b) => {
        const bar = make('i', null, {title: b.requests + ' within ' + ms(b.below_us)});
        bar.style.height = (100 * b.requests / most) + '%';
        return bar;
      }));
    } catch (e) {
      $('latency').textContent = '';
    }
  }

  // ---- the beginning ----

  async function choose(name) {
    state.index = state.indexes.find((i) => i.name === name) || state.indexes[0] || null;
    state.chosen.clear();
    if (!state.index)
      return;
    $('index').value = state.index.name;
    const before = $('sort').value;
    $('sort').replaceChildren(make('option', 'score', {value: ''}));
    for (const a of state.index.attributes)
      for (const [way, word] of [['asc', 'up'], ['desc', 'down']])
        $('sort').append(make('option', a.name + ', ' + word, {value: a.name + ':' + way}));
    $('sort').value = before;
    if ($('sort').selectedIndex < 0)
      $('sort').value = '';
  }

  async function begin() {
    const hash = new URLSearchParams(location.hash.slice(1));
    try {
      state.indexes = (await ask('/v1')).indexes;
    } catch (e) {
      say(e.message, true);
      if (!$('token-line').hidden)
        $('token').focus();
      return;
    }
    $('index').replaceChildren(...state.indexes.map((i) => make('option', i.name, {value: i.name})));
    await choose(hash.get('index'));
    for (const name of ['query', 'filter', 'sort'])
      if (hash.get(name))
        $(name).value = hash.get(name);
    if ($('sort').selectedIndex < 0)
      $('sort').value = '';
    search();
  }

  function move(step) {
    const all = [...document.querySelectorAll('#hits h2 button')];
    const i = all.indexOf(document.activeElement);
    const next = all[i < 0 ? (step > 0 ? 0 : all.length - 1) : i + step];
    if (next)
      next.focus();
  }

  $('form').addEventListener('submit', (e) => {
    e.preventDefault();
    if (state.index)
      search();
    else
      begin();
  });
  $('index').addEventListener('change', () => choose($('index').value).then(() => search()));
  for (const name of ['op', 'sort', 'syntax', 'explain'])
    $(name).addEventListener('change', () => search());
  $('more').addEventListener('click', () => search(state.cursor));
  document.addEventListener('keydown', (e) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== 'checkbox';
    if (typing || e.ctrlKey || e.metaKey || e.altKey)
      return;
    if (e.key === '/') {
      e.preventDefault();
      $('query').focus();
      $('query').select();
    } else if (e.key === 'j' || e.key === 'k') {
      move(e.key === 'j' ? 1 : -1);
    }
  });
  begin();
})();
