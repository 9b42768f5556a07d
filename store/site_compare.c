#include "store/site_compare.h"

#include <string.h>

#include "core/json.h"
#include "store/leaf.h"
#include "store/site_asset.h"
#include "store/site_index.h"

enum { SHARD = 64 }; /* cases, or objects, of one file */

struct field {
	const char *column, *title; /* of view.h */
};
static const struct field run_fields[] = {{"observed_at", "Observed"}, {"status", "Status"}, {"evidence", "Evidence level"}, {"rank", "Rank"},
					  {"cohort_size", "Ranked in its group"}, {"unranked", "Why it has no rank"}, {"liger_version", "Version"},
					  {"upstream_commit", "Upstream commit"}, {"caveats", "Caveats"}};
static const struct field case_fields[] = {{"comparison_key", "Comparison key"}, {"metric", "Metric"}, {"operation_slug", "Operation name"},
					   {"kernel", "Kernel"}, {"mode", "Pass"}, {"workload_label", "Workload label"}, {"provider", "Provider"}, {"gpu", "GPU"},
					   {"dtype", "dtype"}, {"x_name", "Swept in the source"}, {"x_value", "Swept value"}};
static const struct field object_fields[] = {{"operation", "Operation"}, {"workload", "Workload"}, {"implementation", "Implementation"},
					     {"protocol", "Protocol"}, {"environment", "Environment"}};
enum { RUN_FIELDS = sizeof run_fields / sizeof *run_fields, CASE_FIELDS = sizeof case_fields / sizeof *case_fields,
       OBJECT_FIELDS = sizeof object_fields / sizeof *object_fields };

/* ---- data ---- */

static void put_fields(const struct view *v, const struct field *fields, size_t count, struct buf *out)
{
	struct buf text = {0};
	buf_char(out, '[');
	for (size_t i = 0; i < count; i++) {
		buf_clear(&text);
		view_column(slice_of(fields[i].column))->put(v, &text);
		buf_str(out, i ? "," : "");
		html_json(out, (struct slice){text.data ? text.data : "", text.len});
	}
	buf_char(out, ']');
	buf_fini(&text);
}

void site_compare_run(struct site *s, const struct site_run *r, struct buf *out)
{
	const struct member m = {.run = r->run, .row = r->row, .c = r->of, .rank = r->rank, .unranked = r->unranked};
	const struct cohort k = {.key = r->of->cohort, .ranked = r->ranked};
	const struct view v = {.catalog = s->c, .m = &m, .k = &k, .labels = catalog_labels(s->c, r->row.labels)};
	const double values[] = {r->row.value_50, r->row.value_20, r->row.value_80};
	enum metric metric = r->of->parts.metric;
	buf_printf(out, ",%u,", r->of->id);
	put_fields(&v, run_fields, RUN_FIELDS, out);
	for (size_t i = 0; i < 3; i++)
		buf_printf(out, "%s%lld", i ? "," : ",[", (long long)run_units(&r->row, metric, values[i]));
	for (size_t i = 0; i < 3; i++) {
		int64_t units = run_units(&r->row, metric, values[i]);
		buf_str(out, i ? ",\"" : "],[\"");
		if (units >= 0)
			view_quantity(metric, units, out);
		buf_char(out, '"');
	}
	buf_str(out, "],\"");
	site_flag_names(s, r->run, out);
	buf_char(out, '"');
}

static int put_case(struct site *s, uint32_t id, struct buf *out)
{
	const struct catalog_case *of = catalog_case(s->c, id);
	if (!of)
		return -1;
	const struct digest *objects[OBJECT_FIELDS] = {&of->parts.operation, &of->parts.workload, &of->parts.implementation, &of->parts.protocol,
						       &of->parts.environment};
	const struct member m = {.c = of};
	const struct cohort k = {.key = of->cohort};
	const struct view v = {.catalog = s->c, .m = &m, .k = &k};
	buf_char(out, '[');
	put_fields(&v, case_fields, CASE_FIELDS, out);
	for (size_t i = 0; i < OBJECT_FIELDS; i++) {
		uint32_t number;
		int found = catalog_object_id(s->c, objects[i], &number);
		if (found < 0)
			return -1;
		if (!found)
			return err_at(s->c->err, ERR_CORRUPT, s->c->st.file, 0, 0, "case %u cites an object that is not there; run `ki check`", id);
		buf_printf(out, "%s%u", i ? "," : ",[", number);
	}
	buf_str(out, "]]");
	return 0;
}

static void put_leaf(void *context, const char *name, struct slice text)
{
	struct buf *out = context;
	buf_str(out, out->data[out->len - 1] == '[' ? "[" : ",[");
	html_json(out, slice_of(name));
	buf_char(out, ',');
	html_json(out, text);
	buf_char(out, ']');
}

/* Bodies of runs are objects too; nothing here asks for theirs. */
static int put_object(struct site *s, uint32_t id, struct buf *out)
{
	struct buf body = {0};
	struct digest d;
	char digest[DIGEST_TEXT + 1];
	json_t *root = NULL;
	if (catalog_object(s->c, id, &d, &body) == 0)
		root = json_load_text(body.data, body.len, s->c->st.file, s->c->err);
	if (root) {
		digest_text(&d, digest);
		buf_printf(out, "[\"%s\",[", digest);
		if (strcmp(json_text_of(root, "kind"), "BenchmarkRun") != 0)
			leaf_each("", json_object_get(root, "spec"), put_leaf, out);
		buf_str(out, "]]");
	}
	json_decref(root);
	buf_fini(&body);
	return root ? 0 : -1;
}

/* Files of SHARD things each, `kind` and a number. */
static int write_shards(struct site *s, char kind, uint32_t count, int (*put)(struct site *s, uint32_t id, struct buf *out))
{
	struct buf out = {0};
	char name[32];
	int rc = 0;
	for (uint32_t id = 0; id < count && rc == 0; id++) {
		if (id % SHARD == 0) {
			snprintf(name, sizeof name, "%c%u", kind, id / SHARD);
			site_shard_begin(&out, name);
		}
		buf_char(&out, id % SHARD ? ',' : '[');
		rc = put(s, id, &out);
		if (rc == 0 && (id % SHARD == SHARD - 1 || id == count - 1)) {
			buf_char(&out, ']');
			rc = site_shard_end(s, &out, name);
		}
	}
	buf_fini(&out);
	return rc;
}

static void put_titles(struct buf *out, const char *name, const struct field *fields, size_t count)
{
	buf_printf(out, ",\"%s\":[", name);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s[\"%s\",\"%s\"]", i ? "," : "", fields[i].column, fields[i].title);
	buf_char(out, ']');
}

static int write_rules(struct site *s)
{
	struct buf out = {0};
	site_shard_begin(&out, "compare");
	buf_printf(&out, "{\"max\":%d,\"shard\":%d", COMPARE_MAX, SHARD);
	put_titles(&out, "run", run_fields, RUN_FIELDS);
	put_titles(&out, "case", case_fields, CASE_FIELDS);
	put_titles(&out, "objects", object_fields, OBJECT_FIELDS);
	for (size_t i = 0; i < compare_material_count; i++)
		buf_printf(&out, "%s\"%s\"", i ? "," : ",\"material\":[", compare_material[i]);
	for (size_t i = 0; i < compare_claim_count; i++)
		buf_printf(&out, "%s\"%s\":\"%s\"", i ? "," : "],\"claims\":{", compare_claims[i].claim, compare_claims[i].words);
	buf_str(&out, "}}");
	int rc = site_shard_end(s, &out, "compare");
	buf_fini(&out);
	return rc;
}

/* ---- the page ---- */

void site_compare_link(struct page *p, const struct digest *const *runs, size_t count, const char *text)
{
	char hex[DIGEST_HEX + 1];
	page_printf(p, "<a href=\"%scompare.html", p->up);
	for (size_t i = 0; i < count; i++) {
		digest_hex(runs[i], hex);
		page_printf(p, "%c%s", i ? ',' : '#', hex);
	}
	page_str(p, "\">");
	html_str(&p->out, text);
	page_str(p, "</a>");
}

static int write_page(struct site *s)
{
	struct page p = {0};
	page_begin(&p, s, "", slice_of("Compare"));
	page_printf(&p, "<p>Up to %d runs side by side, whichever you choose. The address names them, so that it can be kept and sent. What differs is marked; a "
			"ratio to the first stands only where the comparison keys are equal, and else the reason why there is none.</p>\n", COMPARE_MAX);
	page_str(&p, "<noscript><p class=\"box\">Putting runs of your choice side by side needs a script. Without one, the page of a run has its ratio to the first "
		     "of its comparison group, the page of the group has the whole ranking, and <code>ki compare RUN RUN</code> says in a terminal what this page "
		     "would.</p></noscript>\n<div id=\"verdict\" role=\"status\" tabindex=\"-1\"></div>\n"
		     "<div class=\"scripted\">\n<p><input type=\"checkbox\" id=\"only\"> <label for=\"only\">Show only what differs</label></p>\n</div>\n"
		     "<div id=\"compared\"></div>\n<section class=\"scripted\" aria-labelledby=\"add\">\n<h2 id=\"add\">Add a run</h2>\n");
	site_put_search(&p, "Search names and digests; a run that you pick is added");
	page_str(&p, "</section>\n<script src=\"assets/compare.js\" defer></script>\n");
	int rc = page_end(&p, "compare.html");
	page_fini(&p);
	return rc;
}

static const char *const script[] = {
	"'use strict';\n",
	"(function () {\n",
	"  var meta, turn = 0, runs = [], place = document.getElementById('compared'), verdict = document.getElementById('verdict'), only = document.getElementById('only');\n",
	"  function put(parent, name, text) { var item = document.createElement(name); if (text) item.textContent = text; parent.appendChild(item); return item; }\n",
	"  function asked() { return location.hash.slice(1).toLowerCase().split(',').filter(Boolean).map(function (text) { return text.replace(/^sha256(:|%3a)/, ''); }); }\n",
	"  function loadAll(names, done) {\n",
	"    var left = names.length;\n",
	"    if (left === 0) done();\n",
	"    names.forEach(function (name) { kiLoad(name, function () { if (--left === 0) done(); }); });\n",
	"  }\n",
	"  function held(name) { var rows = []; kiLoad(name, function (found) { rows = found; }); return rows; }\n",
	"  function caseShard(run) { return 'k' + Math.floor(run.row[2] / meta.shard); }\n",
	"  function objectShard(number) { return 'o' + Math.floor(number / meta.shard); }\n",
	"  function caseOf(run) { return held(caseShard(run))[run.row[2] % meta.shard]; }\n",
	"  function find(hex, problems) {\n",
	"    if (!/^[0-9a-f]{8,64}$/.test(hex)) { problems.push('Not a run digest, nor 8 or more digits of one: ' + hex); return null; }\n",
	"    var rows = held('d' + hex.slice(0, 2)).filter(function (row) { return row[0].indexOf(hex) === 0; });\n",
	"    if (rows.length === 1) return { hex: rows[0][0], row: rows[0], fields: {}, leaves: {} };\n",
	"    problems.push((rows.length ? 'Several runs begin with ' : 'No run here has the digest ') + hex);\n",
	"    return null;\n",
	"  }\n",
	"  function fill(run) {\n",
	"    var of = caseOf(run);\n",
	"    meta.run.forEach(function (field, i) { run.fields[field[0]] = run.row[3][i]; });\n",
	"    meta.case.forEach(function (field, i) { run.fields[field[0]] = of[0][i]; });\n",
	"    meta.objects.forEach(function (field, i) {\n",
	"      var object = held(objectShard(of[1][i]))[of[1][i] % meta.shard] || ['', []];\n",
	"      run.fields[field[0]] = object[0];\n",
	"      run.leaves[field[0]] = object[1];\n",
	"    });\n",
	"    run.values = run.row[4]; run.shown = run.row[5];\n",
	"    run.fields.run = 'sha256:' + run.hex; run.fields.external_id = run.row[1]; run.fields.flags = run.row[6];\n",
	"  }\n",
	"  function differing(a, b) {\n",
	"    var names = meta.material.filter(function (name) { return a.fields[name] !== b.fields[name]; });\n",
	"    return names.length || a.fields.comparison_key === b.fields.comparison_key ? names : ['comparison_key'];\n",
	"  }\n",
	"  function claim(a, b) {\n",
	"    if (a.values[0] <= 0 || b.values[0] < 0) return 'no-median';\n",
	"    if (a.values[1] < 0 || a.values[2] < 0 || b.values[1] < 0 || b.values[2] < 0) return 'no-spread';\n",
	"    if (a.values[1] <= b.values[2] && b.values[1] <= a.values[2]) return 'overlap';\n",
	"    return b.values[0] > a.values[0] ? 'slower' : 'faster';\n",
	"  }\n",
	"  function against(a, b) {\n",
	"    var names = differing(a, b), said = claim(a, b), ratio = b.values[0] / a.values[0];\n",
	"    if (names.length) return 'may not be compared: ' + names.map(title).join(', ') + (names.length > 1 ? ' differ' : ' differs');\n",
	"    if (said === 'no-median') return meta.claims[said];\n",
	"    return Number(ratio.toPrecision(4)) + '\\u00d7 (' + (ratio < 1 ? '' : '+') + ((ratio - 1) * 100).toFixed(1) + ' %); ' + meta.claims[said];\n",
	"  }\n",
	"  function title(name) {\n",
	"    var found = meta.run.concat(meta.case, meta.objects).filter(function (field) { return field[0] === name; })[0];\n",
	"    return found ? found[1].toLowerCase() : name;\n",
	"  }\n",
	"  function name(i) { return '#' + (i + 1) + ' ' + runs[i].fields.provider; }\n",
	"  function go(list) { location.hash = list.map(function (run) { return run.hex; }).join(','); verdict.focus(); }\n",
	"  function button(parent, text, label, act) { var b = put(parent, 'button', text); b.type = 'button'; b.setAttribute('aria-label', label); b.addEventListener('click', act); }\n",
	"  function heads(table) {\n",
	"    var tr = put(put(table, 'thead'), 'tr');\n",
	"    put(tr, 'th', 'Field').scope = 'col';\n",
	"    runs.forEach(function (run, i) {\n",
	"      var th = put(tr, 'th'), a = put(th, 'a', name(i)), p = put(th, 'p');\n",
	"      th.scope = 'col';\n",
	"      a.href = 'runs/' + run.hex.slice(0, 2) + '/' + run.hex + '.html';\n",
	"      if (i) button(p, 'First', 'Hold the others against ' + name(i), function () { go([run].concat(runs.filter(function (other) { return other !== run; }))); });\n",
	"      button(p, 'Remove', 'Remove ' + name(i), function () { go(runs.filter(function (other) { return other !== run; })); });\n",
	"    });\n",
	"  }\n",
	"  function group(table, text) { var body = put(table, 'tbody'), th = put(put(body, 'tr'), 'th', text); th.scope = 'rowgroup'; th.colSpan = runs.length + 1; return body; }\n",
	"  function line(body, text, values) {\n",
	"    var same = values.every(function (value) { return value === values[0]; }), tr = put(body, 'tr'), th = put(tr, 'th', (same ? '' : '\\u2260 ') + text);\n",
	"    tr.className = same ? 'same' : 'diff';\n",
	"    th.scope = 'row';\n",
	"    values.forEach(function (value) {\n",
	"      var td = put(tr, 'td');\n",
	"      if (value !== values[0]) td.className = 'other';\n",
	"      if (/^sha256:/.test(value)) put(td, 'code', value); else td.textContent = value || '\\u2014';\n",
	"    });\n",
	"    return same;\n",
	"  }\n",
	"  function quantity(run, i) { return run.shown[i] && run.shown[i] + ', ' + run.values[i] + (run.fields.metric === 'latency' ? ' ns' : ' bytes'); }\n",
	"  function column(name) { return runs.map(function (run) { return run.fields[name]; }); }\n",
	"  function objectLines(body, field) {\n",
	"    if (line(body, field[1], column(field[0]))) return;\n",
	"    var names = [], texts = runs.map(function (run) { var map = {}; run.leaves[field[0]].forEach(function (leaf) { map['.' + leaf[0]] = leaf[1]; }); return map; });\n",
	"    texts.forEach(function (map) { Object.keys(map).forEach(function (leaf) { if (names.indexOf(leaf) < 0) names.push(leaf); }); });\n",
	"    names.sort().forEach(function (leaf) { line(body, field[1] + leaf.replace(/^\\.?/, ': '), texts.map(function (map) { return map[leaf] || ''; })); });\n",
	"  }\n",
	"  function table() {\n",
	"    var box = put(place, 'div'), all = put(box, 'table'), body;\n",
	"    box.className = 'scroll'; box.tabIndex = 0; box.setAttribute('role', 'region'); box.setAttribute('aria-label', 'Runs side by side');\n",
	"    put(all, 'caption', 'Runs side by side; \\u2260 marks what differs');\n",
	"    heads(all);\n",
	"    body = group(all, 'Measurement');\n",
	"    ['Median', 'p20', 'p80'].forEach(function (text, i) { line(body, text, runs.map(function (run) { return quantity(run, i); })); });\n",
	"    if (runs.length > 1) line(body, 'Against #1', runs.map(function (run, i) { return i ? against(runs[0], run) : '1\\u00d7'; }));\n",
	"    line(body, 'Flags', column('flags'));\n",
	"    meta.run.forEach(function (field) { line(body, field[1], column(field[0])); });\n",
	"    body = group(all, 'What was measured');\n",
	"    meta.case.forEach(function (field) { line(body, field[1], column(field[0])); });\n",
	"    body = group(all, 'What it rests on');\n",
	"    line(body, 'Run', column('run'));\n",
	"    line(body, 'External id', column('external_id'));\n",
	"    meta.objects.forEach(function (field) { objectLines(body, field); });\n",
	"  }\n",
	"  function sum(first, rest) {\n",
	"    var barred = rest.filter(function (run) { return differing(first, run).length; }).length;\n",
	"    if (!first) return 'No run is named in the address; add some below.';\n",
	"    if (rest.length === 0) return 'One run is named; add another below.';\n",
	"    if (barred === 0) return 'These runs may be compared: they share one comparison key.';\n",
	"    return rest.length === 1 ? 'These runs may not be compared.' : 'Not all of these runs may be compared with #1; no ratio is given where they may not.';\n",
	"  }\n",
	"  function say(problems) {\n",
	"    var facts = [];\n",
	"    runs.forEach(function (run, i) {\n",
	"      if (i) facts.push(name(i) + ' against ' + name(0) + ': ' + against(runs[0], run) + '.');\n",
	"      if (run.fields.unranked) facts.push(name(i) + ' has no rank: ' + run.fields.unranked + '.');\n",
	"    });\n",
	"    verdict.textContent = '';\n",
	"    problems.forEach(function (text) { put(verdict, 'p', text + '.').className = 'box'; });\n",
	"    put(verdict, 'p', sum(runs[0], runs.slice(1)));\n",
	"    if (facts.length) { var list = put(verdict, 'ul'); facts.forEach(function (text) { put(list, 'li', text); }); }\n",
	"  }\n",
	"  function render(wanted, problems) {\n",
	"    runs = [];\n",
	"    wanted.forEach(function (hex) {\n",
	"      var run = find(hex, problems);\n",
	"      if (run && !runs.some(function (other) { return other.hex === run.hex; })) runs.push(run);\n",
	"    });\n",
	"    if (runs.length > meta.max) { problems.push('Only the first ' + meta.max + ' runs are shown'); runs = runs.slice(0, meta.max); }\n",
	"    loadAll(runs.map(caseShard), function () {\n",
	"      var mine = turn, whole = runs.filter(caseOf), numbers = [].concat.apply([], whole.map(function (run) { return caseOf(run)[1]; }));\n",
	"      if (whole.length < runs.length) problems.push('A file of data/ is missing, so a run is left out');\n",
	"      runs = whole;\n",
	"      loadAll(numbers.map(objectShard), function () {\n",
	"        if (mine !== turn) return;\n",
	"        runs.forEach(fill);\n",
	"        place.textContent = '';\n",
	"        say(problems);\n",
	"        if (runs.length) table();\n",
	"      });\n",
	"    });\n",
	"  }\n",
	"  function start() {\n",
	"    var mine = ++turn, wanted = asked(), shards = wanted.filter(function (hex) { return /^[0-9a-f]{8}/.test(hex); }).map(function (hex) { return 'd' + hex.slice(0, 2); });\n",
	"    loadAll(['compare'].concat(shards), function () { meta = held('compare'); if (mine === turn) render(wanted, []); });\n",
	"  }\n",
	"  document.getElementById('found').addEventListener('click', function (event) {\n",
	"    var found = /runs\\/..\\/([0-9a-f]{64})\\.html$/.exec(event.target.href || '');\n",
	"    if (!found || event.ctrlKey || event.metaKey || event.shiftKey) return;\n",
	"    event.preventDefault();\n",
	"    if (meta && runs.length >= meta.max) { put(verdict, 'p', meta.max + ' runs are the most; remove one first.').className = 'box'; verdict.focus(); return; }\n",
	"    location.hash = asked().concat(found[1]).join(',');\n",
	"    verdict.focus();\n",
	"  });\n",
	"  only.addEventListener('change', function () { place.classList.toggle('only', only.checked); });\n",
	"  window.addEventListener('hashchange', start);\n",
	"  start();\n",
	"})();\n",
};

int site_compare(struct site *s)
{
	return write_rules(s) || write_shards(s, 'k', s->c->counts.cases, put_case) || write_shards(s, 'o', s->c->counts.objects, put_object) ||
	       site_put_asset(s, "assets/compare.js", script, sizeof script / sizeof *script) || write_page(s) ? -1 : 0;
}
