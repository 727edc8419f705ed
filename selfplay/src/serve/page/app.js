// The page: which view is shown, the theme, and the connection to the server.

import { openAnalysis } from './analysis.js';
import { ApiError, about, askAbout, connection, watchRun } from './api.js';
import { redrawCharts } from './charts.js';
import { capital, h, refreshSelects } from './dom.js';
import { openGame } from './game.js';
import { openGames } from './games.js';
import { openPlay } from './play.js';
import { openRun } from './run.js';

const main = document.getElementById('view');
const banner = document.getElementById('banner');
let isMet = false;
let current = null;

function route() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decoded);
  return { view: parts[0] ?? '', parts: parts.slice(1), query: new URLSearchParams(query) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function opener({ view, parts }) {
  const needsRun = view === 'run' || view === 'games';
  if (needsRun && !about.run) return openNoRun;
  if (view === 'games') return parts.length >= 2 ? openGame : openGames;
  return { run: openRun, analysis: openAnalysis, play: openPlay }[view];
}

async function show() {
  const target = route();
  if (!isMet && !(await meet())) return;
  const open = opener(target);
  if (!open) {
    location.replace(about.run ? '#/run' : '#/analysis');
    return;
  }
  if (current?.open === open && current.view.route?.(target)) return;
  current?.view.leave?.();
  current = { open, view: open(about, target) };
  main.replaceChildren(current.view.element);
  main.dataset.view = target.view;
  document.title = `${capital(target.view)} – Tusker`;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.view === target.view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  window.scrollTo(0, 0);
}

async function meet() {
  try {
    await askAbout();
    // Another view may have been chosen meanwhile, and asked as well.
    if (!isMet && about.run) watchRun((what) => what.includes('run') && refresh(), { pace: 5 });
    isMet = true;
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    main.replaceChildren(h('p', { class: 'message error' }, error.message));
    return false;
  }
}

// The run may have new networks.
async function refresh() {
  try {
    if (await askAbout()) refreshSelects(about.players);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

function openNoRun() {
  const element = h('section', { class: 'panel narrow' },
    h('h1', {}, 'This server shows no run'),
    h('p', {}, 'Run and Games need the folder of a run. Start the server with it:'),
    h('pre', {}, 'selfplay serve --run runs/mine'),
    h('p', {}, 'Without a run, ', h('a', { href: '#/analysis' }, 'Analysis'), ' and ', h('a', { href: '#/play' }, 'Play'), ' work.'));
  return { element };
}

function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = isDark ? 'light' : 'dark';
  try {
    localStorage.setItem('theme', root.dataset.theme);
  } catch {
    // Storage is blocked: the theme lasts as long as the page.
  }
  nameTheme();
  redrawCharts();
}

function nameTheme() {
  const theme = document.documentElement.dataset.theme;
  const isDark = theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const control = document.getElementById('theme');
  control.textContent = isDark ? 'Light' : 'Dark';
  control.setAttribute('aria-label', `Switch to the ${isDark ? 'light' : 'dark'} theme`);
}

function say(text) {
  banner.textContent = text;
  banner.hidden = !text;
}

connection.addEventListener('lost', () => say('The server does not answer. The page tries again until it does.'));
connection.addEventListener('back', () => {
  say('');
  if (current) current.view.retry?.();
  else show();
});
document.getElementById('theme').addEventListener('click', toggleTheme);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', nameTheme);
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
document.addEventListener('keydown', (event) => current?.view.key?.(event));
window.addEventListener('hashchange', show);
nameTheme();
show();
