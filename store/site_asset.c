#include "store/site_asset.h"

#include <string.h>

/* Colours of series: Okabe and Ito's set for colour-blind readers, its yellow left out, darkened in light mode and lightened in dark
 * mode so that each stands 3:1 or more from the background; dashes and marks tell series apart without colour. */
static const char *const css[] = {
	":root{color-scheme:light dark;--ink:#1a1a1a;--soft:#555;--line:#c8c8c8;--paper:#fff;--box:#f4f4f2;--link:#0b57a4;--focus:#b34700;"
	"--s0:#0072b2;--s1:#c04a00;--s2:#00795a;--s3:#a8447c;--s4:#1d7fb5;--s5:#8a6a00;--s6:#444;--s7:#6a4ca8;--floor:#777}\n",
	"@media screen and (prefers-color-scheme:dark){:root{--ink:#ececec;--soft:#b4b4b4;--line:#4a4a4a;--paper:#161616;--box:#222;--link:#8ac2ff;--focus:#ffb266;"
	"--s0:#56b4e9;--s1:#ff8f4a;--s2:#33c9a0;--s3:#e39ac6;--s4:#9cd4f5;--s5:#e6c34a;--s6:#c8c8c8;--s7:#b9a3f0;--floor:#999}}\n",
	"*{box-sizing:border-box}\n",
	"body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\n",
	"header,main{max-width:72rem;margin:0 auto;padding:0 1rem}\n",
	"nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:0;padding:.75rem 0;border-bottom:1px solid var(--line)}\n",
	"h1{font-size:1.6rem;line-height:1.25;margin:1.25rem 0 .5rem}\n",
	"h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}\n",
	"h3{font-size:1rem;margin:1.25rem 0 .25rem}\n",
	"a{color:var(--link)}\n",
	":focus-visible{outline:3px solid var(--focus);outline-offset:2px}\n",
	".skip{position:absolute;left:-100rem}.skip:focus{left:.5rem;top:.5rem;background:var(--paper);padding:.25rem .5rem}\n",
	"h1,h2,dd,td,th,code,li,pre{unicode-bidi:isolate}\n",
	"code,pre{font-family:ui-monospace,monospace;font-size:.875em}\n",
	"pre{background:var(--box);padding:.75rem;white-space:pre-wrap;margin:.5rem 0}\n",
	".sub{color:var(--soft);margin:.25rem 0}\n",
	".figure{font-size:2rem;font-weight:600;margin:.5rem 0 0}.figure small{font-size:1rem;font-weight:400;color:var(--soft)}\n",
	".box{background:var(--box);padding:.5rem 1rem;border-left:4px solid var(--focus);margin:.5rem 0}\n",
	"dl{display:grid;grid-template-columns:minmax(8rem,14rem) 1fr;gap:.2rem 1rem;margin:.5rem 0}\n",
	"dt{color:var(--soft)}dd{margin:0;min-width:0}\n",
	".scroll{overflow-x:auto;margin:.5rem 0}\n",
	"table{border-collapse:collapse;font-size:.9rem;min-width:100%}\n",
	"caption{text-align:left;color:var(--soft);padding:.25rem 0}\n",
	"th,td{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line);min-width:4.5rem;max-width:26rem;overflow-wrap:break-word}td code{overflow-wrap:anywhere}\n",
	".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n",
	"button,input{font:inherit;color:inherit;background:var(--box);border:1px solid var(--soft);border-radius:.25rem;padding:.15rem .5rem}\n",
	"input[type=checkbox]{width:1.5rem;height:1.5rem;vertical-align:middle}.said{position:absolute;left:-100rem}\n",
	"input:not([type=checkbox]){width:100%;max-width:40rem;padding:.4rem .6rem}\n",
	".copy{display:none;font-size:.8rem}.js .copy{display:inline}\n",
	".cards{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;padding:0;list-style:none}\n",
	"footer{margin:2.5rem 0 1.5rem;padding-top:.5rem;border-top:1px solid var(--line);color:var(--soft);font-size:.9rem}\n",
	"svg{display:block;width:100%;height:auto;min-width:32rem;max-width:48rem;margin:.5rem 0}\n",
	"svg text{fill:var(--ink);font:12px system-ui,sans-serif}svg .grid{stroke:var(--line);stroke-width:1;fill:none}\n",
	"svg .floor{stroke:var(--floor);stroke-width:2;stroke-dasharray:2 4;fill:none}svg .version{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:7 4;fill:none}svg .band{opacity:.22;stroke:none}svg .curve{fill:none;stroke-width:2}\n",
	".s0{stroke:var(--s0);fill:var(--s0)}.s1{stroke:var(--s1);fill:var(--s1)}.s2{stroke:var(--s2);fill:var(--s2)}.s3{stroke:var(--s3);fill:var(--s3)}\n",
	".s4{stroke:var(--s4);fill:var(--s4)}.s5{stroke:var(--s5);fill:var(--s5)}.s6{stroke:var(--s6);fill:var(--s6)}.s7{stroke:var(--s7);fill:var(--s7)}\n",
	"#compared td{max-width:14rem;overflow-wrap:anywhere}#compared tbody th{position:sticky;left:0;max-width:12rem;background:var(--paper)}"
	"#compared th[scope=rowgroup]{background:var(--box)}#compared th button{margin-right:.4rem;font-weight:400}.other{font-weight:600}\n",
	".only tr.same{display:none}.diff th{color:var(--focus)}.scripted{display:none}.js .scripted{display:block}#verdict:focus{outline-offset:4px}\n",
	".step td{background:var(--box)}\n",
	"svg .mark{stroke-dasharray:none}\n",
	"@media (max-width:40rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}h1{font-size:1.3rem}.figure{font-size:1.6rem}}\n",
	"@media print{:root{color-scheme:light}header,.copy,.js .copy,.js .scripted,.skip,form{display:none}body{font-size:11pt}main{max-width:none}details::details-content{content-visibility:visible}details:not([open])>*{display:block}"
	"section{break-inside:avoid-page}.scroll{overflow:visible}svg{min-width:0}}\n",
};

static const char *const js[] = {
	"'use strict';\n",
	"(function () {\n",
	"  var root = document.documentElement, base = document.currentScript ? document.currentScript.src.replace(/assets\\/site\\.js.*$/, '') : '';\n",
	"  root.classList.add('js');\n",
	"  var told = document.body.appendChild(document.createElement('p'));\n",
	"  told.className = 'said'; told.setAttribute('role', 'status');\n",
	"  function copied(button, text) {\n",
	"    button.textContent = 'Copied'; told.textContent = 'Copied ' + text;\n",
	"    clearTimeout(button.back); button.back = setTimeout(function () { button.textContent = 'Copy'; }, 1500);\n",
	"  }\n",
	"  function copyOld(text) {\n",
	"    var area = document.createElement('textarea');\n",
	"    area.value = text; document.body.appendChild(area); area.select(); document.execCommand('copy'); area.remove();\n",
	"  }\n",
	"  document.addEventListener('click', function (event) {\n",
	"    var button = event.target;\n",
	"    if (!button.classList || !button.classList.contains('copy')) return;\n",
	"    var text = button.previousElementSibling.textContent;\n",
	"    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(function () { copied(button, text); }, function () { copyOld(text); copied(button, text); });\n",
	"    else { copyOld(text); copied(button, text); }\n",
	"  });\n",
	"  document.querySelectorAll('[data-today]').forEach(function (item) { item.textContent = new Date().toISOString().slice(0, 10); });\n",
	"  var shards = {}, waiting = {};\n",
	"  window.kiShard = function (name, rows) { shards[name] = rows; (waiting[name] || []).forEach(function (done) { done(rows); }); delete waiting[name]; };\n",
	"  function load(name, done) {\n",
	"    if (shards[name]) { done(shards[name]); return; }\n",
	"    if (waiting[name]) { waiting[name].push(done); return; }\n",
	"    waiting[name] = [done];\n",
	"    var script = document.createElement('script');\n",
	"    script.src = base + 'data/' + name + '.js';\n",
	"    script.onerror = function () { window.kiShard(name, []); };\n",
	"    document.head.appendChild(script);\n",
	"  }\n",
	"  window.kiLoad = load;\n",
	"  function link(href, text) { var a = document.createElement('a'); a.href = base + href; a.textContent = text; return a; }\n",
	"  function runHref(hex) { return 'runs/' + hex.slice(0, 2) + '/' + hex + '.html'; }\n",
	"  var box = document.getElementById('q'), list = document.getElementById('found'), said = document.getElementById('said'), turn = 0, MOST = 50;\n",
	"  function show(items, more) {\n",
	"    list.textContent = '';\n",
	"    items.slice(0, MOST).forEach(function (item) { var li = document.createElement('li'); li.appendChild(link(item[0], item[1])); list.appendChild(li); });\n",
	"    said.textContent = items.length === 0 ? (more ? 'Searching\\u2026' : 'Nothing found.') : (items.length > MOST ? 'The first ' + MOST + ' of more' : items.length + ' found') + (more ? ', searching\\u2026' : '.');\n",
	"  }\n",
	"  function byDigest(hex, mine) {\n",
	"    load('d' + hex.slice(0, 2), function (rows) {\n",
	"      if (mine === turn) show(rows.filter(function (row) { return row[0].indexOf(hex) === 0; }).map(function (row) { return [runHref(row[0]), row[1]]; }), false);\n",
	"    });\n",
	"  }\n",
	"  function search() {\n",
	"    var mine = ++turn, text = box.value.trim().toLowerCase(), hex = text.replace(/^sha256:/, '');\n",
	"    if (!text) { list.textContent = ''; said.textContent = ''; return; }\n",
	"    if (/^[0-9a-f]{8,64}$/.test(hex)) { byDigest(hex, mine); return; }\n",
	"    var words = text.split(/\\s+/), items = [];\n",
	"    function all(name) { var low = name.toLowerCase(); return words.every(function (word) { return low.indexOf(word) >= 0; }); }\n",
	"    load('names', function (names) {\n",
	"      names.pages.forEach(function (page) { if (all(page[1])) items.push([page[0], page[1]]); });\n",
	"      var rest = names.shards.slice();\n",
	"      rest.sort(function (a, b) { return hits(b[1]) - hits(a[1]); });\n",
	"      function hits(name) { return words.filter(function (word) { return name.indexOf(word) >= 0; }).length; }\n",
	"      (function next() {\n",
	"        if (mine !== turn) return;\n",
	"        show(items, rest.length > 0 && items.length <= MOST);\n",
	"        if (rest.length === 0 || items.length > MOST) return;\n",
	"        load(rest.shift()[0], function (groups) {\n",
	"          groups.forEach(function (group) {\n",
	"            if (items.length > MOST) return;\n",
	"            group[1].forEach(function (run) { var id = group[0] + '/' + run[0]; if (items.length <= MOST && all(id)) items.push([runHref(run[1]), id]); });\n",
	"          });\n",
	"          next();\n",
	"        });\n",
	"      })();\n",
	"    });\n",
	"  }\n",
	"  if (box) { box.form.addEventListener('submit', function (event) { event.preventDefault(); search(); }); box.addEventListener('input', search); box.value = new URLSearchParams(location.search).get('q') || box.value; if (box.value) search(); }\n",
	"})();\n",
};

int site_put_asset(struct site *s, const char *name, const char *const *lines, size_t count)
{
	struct buf all = {0};
	for (size_t i = 0; i < count; i++)
		buf_str(&all, lines[i]);
	int rc = site_write(s, name, &all);
	buf_fini(&all);
	return rc;
}

int site_assets(struct site *s)
{
	return site_put_asset(s, "assets/site.css", css, sizeof css / sizeof *css) || site_put_asset(s, "assets/site.js", js, sizeof js / sizeof *js) ? -1 : 0;
}
