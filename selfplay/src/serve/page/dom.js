// Making elements, and values in words. Text is only ever set as text.

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'disabled') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

export function button(text, onclick, attributes = {}) {
  return h('button', { type: 'button', onclick, ...attributes }, text);
}

export function field(label, control) {
  return h('label', { class: 'field' }, h('span', {}, label), control);
}

/** Makes these the children of a parent. Those that stay are not moved, so that they keep the focus and remain open. */
export function setChildren(parent, children) {
  const wanted = new Set(children);
  [...parent.children].filter((child) => !wanted.has(child)).forEach((child) => child.remove());
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
}

const optionLists = new WeakMap();

/** A select. Each option is a text, or a pair of value and text. */
export function select(options, value, onchange = () => {}) {
  const element = h('select', { onchange: () => onchange(element.value) });
  optionLists.set(element, options);
  setOptions(element, options, value);
  return element;
}

export function setOptions(element, options, value) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  const before = new Map([...element.options].map((option) => [option.value, option]));
  setChildren(element, pairs.map(([key, text]) => {
    const option = before.get(key) ?? h('option', { value: key });
    if (option.textContent !== text) option.textContent = text;
    return option;
  }));
  if (pairs.some(([key]) => key === value)) element.value = value;
}

/** Shows a list of options that has changed in the selects that were made of it. */
export function refreshSelects(options) {
  for (const element of document.querySelectorAll('select')) {
    if (optionLists.get(element) === options) setOptions(element, options, element.value);
  }
}

export function section(title, ...children) {
  return h('section', { class: 'panel' }, h('h2', {}, title), ...children);
}

/** A table. Cells are texts or elements; columns named in `numeric` are aligned to the right. */
export function table(columns, rows, { numeric = [], caption = null } = {}) {
  const kinds = columns.map((name) => (numeric.includes(name) ? 'number' : null));
  const head = columns.map((name, index) => h('th', { scope: 'col', class: kinds[index] }, name));
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption ?? columns.join(', ') },
    h('table', {}, h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows.map((cells) => tableRow(cells, kinds)))));
}

/** A row of a table. `kinds` are the cells' classes. */
export function tableRow(cells, kinds) {
  return h('tr', {}, cells.map((cell, index) => h('td', { class: kinds[index] }, cell ?? '–')));
}

/** Marks a turn in a list of turns, and scrolls the list to it. `scrollIntoView` would move the page too. */
export function markTurn(list, index) {
  list.querySelector('[aria-current]')?.removeAttribute('aria-current');
  const item = list.querySelectorAll('button')[index];
  if (!item) return;
  item.setAttribute('aria-current', 'true');
  const [top, bottom] = [item.offsetTop, item.offsetTop + item.offsetHeight];
  if (top < list.scrollTop) list.scrollTop = top - 8;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight + 8;
}

export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined);
  return h('dl', { class: 'facts' }, known.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

/** Replaces parts of an element, and keeps what the reader has scrolled to, focused or opened. */
export function keepingPlace(holder, replace) {
  const scrolled = () => [...holder.querySelectorAll('.scroll, pre')];
  const focusable = () => [...holder.querySelectorAll('.scroll, pre, summary, a, button')];
  const details = () => [...holder.querySelectorAll('details')];
  const places = scrolled().map((element) => [element.scrollLeft, element.scrollTop]);
  const focused = focusable().indexOf(document.activeElement);
  const open = details().map((element) => element.open);
  replace();
  scrolled().forEach((element, index) => { [element.scrollLeft, element.scrollTop] = places[index] ?? [0, 0]; });
  details().forEach((element, index) => { element.open = open[index] ?? element.open; });
  if (focused >= 0) focusable()[focused]?.focus({ preventScroll: true });
}

/** Says it to a screen reader. */
export function announce(text) {
  document.getElementById('live').textContent = text;
}

export async function copy(text, control) {
  const before = control.textContent;
  control.textContent = (await written(text)) ? 'Copied' : 'Not copied: the browser refuses';
  setTimeout(() => { control.textContent = before; }, 1500);
}

// `navigator.clipboard` is missing where the page comes over plain HTTP from another machine.
async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'unseen', value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);

export function number(value, digits = 0) {
  if (isMissing(value)) return '–';
  return value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

export function percent(value, digits = 0) {
  return isMissing(value) ? '–' : `${(100 * value).toFixed(digits)} %`;
}

export function duration(seconds) {
  if (isMissing(seconds)) return '–';
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}

export function bytes(count) {
  if (isMissing(count)) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${count.toFixed(unit && count < 100 ? 1 : 0)} ${units[unit]}`;
}

export function moment(seconds) {
  if (isMissing(seconds)) return '–';
  return new Date(1000 * seconds).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export function stored(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key));
  } catch {
    return null;
  }
}

export function store(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Storage is full or blocked: the value lasts as long as the page.
  }
}
