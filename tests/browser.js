// Checks that run inside a page of the site: what a reader with a screen reader, a keyboard, a phone or weak eyes would trip over.
// faults() returns one text a fault, `CODE what`; an empty list is a good page. Rules: WCAG 2.2, levels A and AA.
'use strict';

function parseColor(text) {
  const parts = text.match(/[\d.]+/g).map(Number);
  return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
}
function over(top, under) {
  return top.rgb.map((value, i) => value * top.alpha + under[i] * (1 - top.alpha));
}
function luminance(rgb) {
  const [r, g, b] = rgb.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
function background(element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(parseColor(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((under, layer) => over(layer, under), matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255]);
}
function brief(element) {
  return element.outerHTML.replace(/\s+/g, ' ').slice(0, 100);
}
function shows(element) {
  return element.checkVisibility({ visibilityProperty: true });
}

// Every text that shows: 4.5:1, large text 3:1. What a drawing draws beside its grid: 3:1.
function contrastFaults(say) {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    if (!walker.currentNode.data.trim() || !shows(element) || element.closest('noscript,script,style')) continue;
    const paper = background(element), ink = over(parseColor(element.closest('svg') ? style.fill : style.color), paper), size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5, found = contrast(ink, paper);
    if (found < least) say('contrast', found.toFixed(2) + ' ' + brief(element));
  }
  document.querySelectorAll('svg path:not(.grid):not(.band)').forEach((path) => {
    if (getComputedStyle(path).stroke === 'none') return;
    const paper = background(path), found = contrast(over(parseColor(getComputedStyle(path).stroke), paper), paper);
    if (found < 3) say('contrast', found.toFixed(2) + ' ' + brief(path));
  });
}

function nameOf(element) {
  const named = (element.getAttribute('aria-labelledby') || '').split(' ').filter(Boolean).map((id) => document.getElementById(id));
  const label = element.id && document.querySelector('label[for="' + CSS.escape(element.id) + '"]');
  const own = element.matches('input,svg,section') ? '' : element.textContent;
  return (element.getAttribute('aria-label') || named.map((at) => (at ? at.textContent : '')).join(' ') || (label ? label.textContent : '') || own).trim();
}
function nameFaults(say) {
  document.querySelectorAll('a[href],button,input,select,textarea,summary,[tabindex],[role=img],section,nav,[role=region],[role=group]').forEach((element) => {
    if (!nameOf(element)) say('name', brief(element));
  });
  document.querySelectorAll('svg:not([role=img])').forEach((svg) => say('name', 'a drawing without role=img: ' + brief(svg)));
  document.querySelectorAll('img:not([alt])').forEach((img) => say('name', brief(img)));
  document.querySelectorAll('[aria-labelledby],[aria-describedby],label[for]').forEach((element) => {
    const ids = ['aria-labelledby', 'aria-describedby', 'for'].map((name) => element.getAttribute(name) || '').join(' ');
    ids.split(' ').filter(Boolean).forEach((id) => document.getElementById(id) || say('reference', id + ' is nowhere: ' + brief(element)));
  });
}

function repeated(values) {
  return values.filter((value, i) => values.indexOf(value) !== i);
}
function structureFaults(say) {
  const levels = [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((heading) => Number(heading.tagName[1]));
  if (!document.documentElement.lang) say('lang', 'the page does not say its language');
  if (!document.title.trim()) say('title', 'the page has no title');
  if (levels.filter((level) => level === 1).length !== 1 || levels[0] !== 1) say('headings', 'not one h1, first: ' + levels);
  if (levels.some((level, i) => i > 0 && level > levels[i - 1] + 1)) say('headings', 'a level is passed over: ' + levels);
  if (document.querySelectorAll('main').length !== 1 || !document.querySelector('header nav')) say('landmarks', 'wants one main, and a nav in a header');
  repeated([...document.querySelectorAll('[id]')].map((element) => element.id)).forEach((id) => say('id', id + ' twice'));
  repeated([...document.querySelectorAll('section,nav,[role=region]')].map(nameOf)).forEach((name) => say('landmarks', 'two are named ' + name));
  document.querySelectorAll('table').forEach((table) => {
    if (!table.caption || !table.caption.textContent.trim()) say('table', 'no caption: ' + brief(table));
    if (!table.querySelector('th')) say('table', 'no heads: ' + brief(table));
    if (!table.tBodies.length || !table.tBodies[0].rows.length) say('table', 'empty: ' + brief(table));
    table.querySelectorAll('th:not([scope])').forEach((th) => say('table', 'a head without scope: ' + brief(th)));
  });
  document.querySelectorAll('li').forEach((li) => li.parentElement.matches('ul,ol') || say('list', brief(li)));
  document.querySelectorAll('dt,dd').forEach((item) => item.parentElement.matches('dl,dl > div') || say('list', brief(item)));
}

// Everything within the width of the window, or within a part that scrolls by itself and can be reached with the keyboard.
function widthFaults(say) {
  const scroller = (element) => element.closest('.scroll') && getComputedStyle(element.closest('.scroll')).overflowX === 'auto';
  if (document.scrollingElement.scrollWidth > innerWidth) say('overflow', 'the page is ' + document.scrollingElement.scrollWidth + ' wide');
  document.querySelectorAll('body *:not(.skip)').forEach((element) => {
    const box = element.getBoundingClientRect();
    if (box.width && shows(element) && !scroller(element) && (box.right > innerWidth + 1 || box.left < -1)) say('overflow', brief(element));
  });
  document.querySelectorAll('.scroll').forEach((element) => element.tabIndex === 0 || say('keyboard', 'scrolls, but is not reached: ' + brief(element)));
}

function keyboardFaults(say) {
  const first = document.querySelector('a[href],button,input,summary,[tabindex]');
  if (!first || !/^#./.test(first.getAttribute('href') || '') || !document.getElementById(first.getAttribute('href').slice(1))) say('keyboard', 'the first stop does not skip to the content');
  document.querySelectorAll('[tabindex]').forEach((element) => element.tabIndex > 0 && say('keyboard', 'out of order: ' + brief(element)));
  document.querySelectorAll('[onclick]').forEach((element) => element.matches('a,button') || say('keyboard', 'acts on the mouse only: ' + brief(element)));
  document.querySelectorAll('button,input,select').forEach((element) => {
    const box = element.getBoundingClientRect();
    if (shows(element) && (box.width < 24 || box.height < 24)) say('target', Math.round(box.width) + 'x' + Math.round(box.height) + ' ' + brief(element));
  });
}

function faults() {
  const found = [];
  const say = (code, what) => found.push(code + ' ' + what);
  [contrastFaults, nameFaults, structureFaults, widthFaults, keyboardFaults].forEach((check) => check(say));
  return found;
}
