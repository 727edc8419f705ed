// The run: what is running, how strong the networks are, and how the training goes.

import { ApiError, get, watchRun } from './api.js';
import { Chart, compact, errorBars, join, share } from './charts.js';
import { bytes, capital, duration, facts, h, keepingPlace, moment, number, percent, section, select, setOptions, table } from './dom.js';

const COLORS = ['--blue', '--orange', '--green', '--red', '--purple', '--sky'];
const PHASES = [['self_play', 'self-play', '--blue'], ['training', 'training', '--orange'], ['matches', 'matches', '--green']];
const WORKER_TIME = [['search', '--blue'], ['records', '--purple'], ['encode', '--sky'], ['wait', '--orange'], ['device', '--green']];
const HEADS = { policy: 'Policy', value: 'Value', turns_left: 'Turns left', ending: 'Ending', captures: 'Captures', reply: 'Reply' };

export function openRun() {
  const view = new RunView();
  view.load(['run', 'series']);
  // That a program has ended or is silent changes no file.
  const timer = setInterval(() => document.hidden || view.later(['run']), 15000);
  const close = watchRun((what) => view.load(what), { onTrouble: (isLost) => view.setLive(!isLost) });
  return {
    element: view.element,
    retry: () => view.later(['run', 'series']),
    leave() {
      clearInterval(timer);
      close();
      view.leave();
    },
  };
}

class RunView {
  constructor() {
    this.charts = [];
    this.wanted = new Set();
    this.live = h('span', { class: 'live' }, 'connecting');
    this.title = h('h1', {}, 'Run');
    this.message = h('div', {});
    this.facts = h('div', {});
    this.work = h('div', {});
    this.rest = h('div', { class: 'columns' });
    this.plots = this.makeCharts();
    this.element = h('div', { class: 'run' }, h('div', { class: 'title' }, this.title, this.live), this.message, this.facts, this.work,
      this.plots, this.rest);
  }

  leave() {
    clearTimeout(this.timer);
    this.hasLeft = true;
    this.charts.forEach((chart) => chart.destroy());
  }

  setLive(isLive) {
    this.live.textContent = isLive ? 'live' : 'no live updates: trying again';
    this.live.classList.toggle('bad', !isLive);
  }

  // Collects changes, so that a busy run is requested at most every two seconds.
  later(what) {
    what.forEach((one) => this.wanted.add(one));
    this.timer ??= setTimeout(() => {
      this.timer = null;
      const wanted = [...this.wanted];
      this.wanted.clear();
      this.load(wanted);
    }, 2000);
  }

  async load(what) {
    if (this.hasLeft) return;
    try {
      if (what.includes('run') || !this.run) this.showRun(await get('/run'));
      if (what.includes('series') || what.includes('games')) this.showSeries(await get('/run/series'));
      this.message.replaceChildren();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const words = error.status === 404 ? `The run is not there any more: ${error.message}` : error.message;
      this.message.replaceChildren(h('p', { class: 'message error', role: 'alert' }, words));
    }
  }

  // The run's state.

  showRun(run) {
    if (this.hasLeft) return;
    this.run = run;
    this.title.textContent = `Run ${run.name}`;
    this.facts.replaceChildren(problems(run.problems), keyFigures(run));
    keepingPlace(this.work, () => this.work.replaceChildren(section('Running now', workInWords(run), generators(run.generators))));
    this.showRatings(run);
    keepingPlace(this.rest, () => this.rest.replaceChildren(h('div', {}, settings(run), matches(run)), networks(run)));
  }

  showRatings({ ratings, clock }) {
    const rated = (ratings?.players ?? []).filter(({ generation }) => generation !== null);
    const anchors = (ratings?.players ?? []).filter(({ generation }) => generation === null);
    this.ratingNote.textContent = ratings
      ? `Elo, measured against ${ratings.reference}. Bars are the ratings’ uncertainty, dashed lines the anchors.`
      : 'No ratings yet: the loop measures them by matches.';
    for (const key of ['games', 'hours']) {
      const at = new Map([[0, 0], ...clock.map((entry) => [entry.generation, entry[key]])]);
      const points = rated.map((player) => ({ ...player, x: at.get(player.generation) ?? null })).filter(({ x }) => x !== null);
      points.sort((a, b) => a.x - b.x);
      this.ratingChart(key, points, anchors);
    }
  }

  // The anchors are series of their own, so the chart is made anew when they change.
  ratingChart(key, points, anchors) {
    const names = anchors.map(({ player }) => player).join('\n');
    const holder = this.ratingHolders[key];
    if (holder.names !== names) {
      if (holder.chart) this.drop(holder.chart);
      holder.chart = this.add({
        title: `Rating against ${key}`,
        xLabel: capital(key),
        xFormat: key === 'hours' ? (value) => number(value, 2) : (value) => number(value),
        xTicks: compact,
        yFormat: (value) => number(value),
        height: 240,
        series: [
          { label: 'rating', color: '--blue', points: true },
          { label: 'low', color: '--blue', isHidden: true },
          { label: 'high', color: '--blue', isHidden: true },
          { label: 'network', color: '--blue', isHidden: true, scale: 'network', format: networkName },
          ...anchors.map(({ player }, index) => ({ label: player, color: COLORS[1 + (index % 5)], dash: [6, 4] })),
        ],
        overlay: errorBars(2, 3, '--blue'),
      });
      holder.names = names;
      holder.element.replaceChildren(holder.chart.element);
    }
    const column = (name) => points.map((point) => point[name]);
    holder.chart.setData([column('x'), column('rating'), column('low'), column('high'), column('generation'),
      ...anchors.map(({ rating }) => points.map(() => rating))]);
  }

  // Charts.

  add(options) {
    const chart = new Chart(options);
    this.charts.push(chart);
    return chart;
  }

  drop(chart) {
    chart.destroy();
    this.charts.splice(this.charts.indexOf(chart), 1);
  }

  makeCharts() {
    this.ratingHolders = { games: { element: h('div') }, hours: { element: h('div') } };
    this.ratingNote = h('p', { class: 'note' });
    const steps = { xLabel: 'Step', xFormat: (value) => number(value), xTicks: compact };
    const both = [{ label: 'training', color: '--blue' }, { label: 'validation', color: '--orange', points: true }];
    const loss = (title) => this.add({ title, ...steps, series: both });
    this.policyLoss = loss('Policy loss');
    this.valueLoss = loss('Value loss');
    this.otherHead = select([], null, () => this.showLosses());
    this.otherHead.setAttribute('aria-label', 'Head whose loss is shown');
    this.otherLoss = this.add({ title: 'Loss of', note: this.otherHead, ...steps, series: both });
    this.accuracy = this.add({ title: 'Policy accuracy', ...steps, series: both, yFormat: share });
    this.calibration = this.add({
      title: 'Calibration of the value', note: 'newest validation', xLabel: 'Predicted', xFormat: share, yFormat: share, yRange: [0, 1],
      series: [{ label: 'actual', color: '--blue', points: true }, { label: 'ideal', color: '--muted', dash: [4, 4] },
        { label: 'rows', color: '--blue', isHidden: true, scale: 'rows', format: (value) => number(value) }],
    });
    this.speed = this.add({ title: 'Trained rows a second', ...steps, series: [{ label: 'rows/s', color: '--green' }] });
    this.time = this.add({
      title: 'Where the trainer’s time goes', ...steps, yFormat: share, yRange: [0, 1],
      series: [{ label: 'computing', color: '--green' }, { label: 'waiting for rows', color: '--orange' }],
    });
    const ofNetwork = {
      isExact: true, xLabel: 'For network', xFormat: networkName, xTicks: (place) => (Number.isInteger(place) ? compact(place) : ''),
    };
    this.playSpeed = this.add({ title: 'Self-play: evaluations a second', ...ofNetwork,
      series: [{ label: 'evaluations/s', color: '--blue' },
        { label: 'turns/s', color: '--blue', isHidden: true, scale: 'turns', format: (value) => number(value) }] });
    this.playTime = this.add({ title: 'Where the self-play workers’ time goes', ...ofNetwork, yFormat: share, yRange: [0, 1],
      series: WORKER_TIME.map(([label, color]) => ({ label, color })) });
    this.phases = this.add({ title: 'Minutes for each network', ...ofNetwork, yFormat: (value) => number(value, 1),
      series: PHASES.map(([, label, color]) => ({ label, color })) });
    const name = (place) => this.placeNames?.get(place) ?? networkName(place);
    const tick = (place) => this.placeNames?.get(place) ?? (Number.isInteger(place) && place >= 0 ? compact(place) : '');
    const generation = { xLabel: 'Network', xFormat: name, xTicks: tick };
    this.length = this.add({ title: 'Length of games', ...generation, series: [{ label: 'turns', color: '--blue' }] });
    this.endings = this.add({
      title: 'Endings', ...generation, yFormat: share, yRange: [0, 1],
      series: [['goal', '--blue'], ['elimination', '--orange'], ['immobilization', '--purple'], ['unfinished', '--red']]
        .map(([label, color]) => ({ label, color })),
    });
    this.winners = this.add({ title: 'Games won by Gold', ...generation, yFormat: share, yRange: [0, 1],
      series: [{ label: 'Gold', color: '--orange' }] });
    const group = (title, ...children) => section(title, h('div', { class: 'charts' }, children));
    return h('div', { class: 'groups' },
      section('Strength', this.ratingNote,
        h('div', { class: 'charts wide' }, this.ratingHolders.games.element, this.ratingHolders.hours.element)),
      group('Training', this.policyLoss.element, this.valueLoss.element, this.accuracy.element, this.calibration.element,
        this.otherLoss.element),
      group('Speed', this.phases.element, this.playSpeed.element, this.playTime.element, this.speed.element, this.time.element),
      group('Games', this.length.element, this.endings.element, this.winners.element));
  }

  showSeries(series) {
    if (this.hasLeft) return;
    this.series = series;
    const heads = Object.keys(series.train).filter((key) => key.endsWith('_loss')).map((key) => key.slice(0, -5));
    const others = heads.filter((head) => head !== 'policy' && head !== 'value').map((head) => [head, HEADS[head] ?? head]);
    setOptions(this.otherHead, others, this.otherHead.value);
    this.otherLoss.element.hidden = !others.length;
    this.showLosses();
    const { train, generations, self_play: played, phases } = series;
    const steps = train.step ?? [];
    this.speed.setData([steps, train.rows_per_second ?? []]);
    this.time.setData([steps, train.computing ?? [], train.waiting ?? []]);
    const columnsOf = (table, keys) => {
      const networks = table?.generation ?? [];
      return [networks, ...keys.map((key) => table?.[key] ?? networks.map(() => null))];
    };
    this.playSpeed.setData(columnsOf(played, ['evaluations_per_second', 'turns_per_second']));
    this.playTime.setData(columnsOf(played, WORKER_TIME.map(([key]) => key)));
    const [networks, ...seconds] = columnsOf(phases, PHASES.map(([key]) => key));
    this.phases.setData([networks, ...seconds.map((column) => column.map((value) => (value === null ? null : value / 60)))]);
    const calibration = [...(series.calibration ?? [])].sort((a, b) => a.predicted - b.predicted);
    const predicted = calibration.map((bucket) => bucket.predicted);
    this.calibration.setData([predicted, calibration.map(({ actual }) => actual), predicted, calibration.map(({ rows }) => rows)]);
    const numbers = this.places(generations);
    const columns = (...names) => [numbers, ...names.map((name) => generations[name] ?? [])];
    this.length.setData(columns('mean_game_turns'));
    this.endings.setData(columns('goal_share', 'elimination_share', 'immobilization_share', 'unfinished_share'));
    this.winners.setData(columns('gold_share'));
  }

  // Evaluators without a number, such as `uniform`, come first: they stand to the left of the first network.
  places({ generation = [], network = [] }) {
    const first = generation.find((one) => one !== null) ?? 1;
    const unnumbered = generation.filter((one) => one === null).length;
    const places = generation.map((one, index) => one ?? first - unnumbered + index);
    this.placeNames = new Map(places.map((place, index) => [place, network[index]]).filter((_, index) => generation[index] === null));
    return places;
  }

  showLosses() {
    const { train, validation } = this.series;
    const both = (key) => join([[train.step ?? [], train[key] ?? []], [validation.step ?? [], validation[key] ?? []]]);
    this.policyLoss.setData(both('policy_loss'));
    this.valueLoss.setData(both('value_loss'));
    this.otherLoss.setData(both(`${this.otherHead.value}_loss`));
    this.accuracy.setData(both('policy_accuracy'));
  }
}

const note = (text) => h('p', { class: 'note' }, text);
const interval = ({ low, high }) => `${number(low)} to ${number(high)}`;
const networkName = (generation) => (Number.isFinite(generation) ? String(Math.round(generation)).padStart(5, '0') : '–');

export function problems(list) {
  if (!list?.length) return '';
  return h('div', { class: 'message warning' }, h('strong', {}, list.length === 1 ? 'A problem' : `${list.length} problems`),
    h('ul', {}, list.map((problem) => h('li', {}, problem))));
}

function keyFigures(run) {
  const { trainer, networks: list, generators: all } = run;
  const newest = list.reduce((best, one) => (best && best.generation > one.generation ? best : one), null);
  const rated = (run.ratings?.players ?? []).filter(({ generation }) => generation !== null).sort((a, b) => b.generation - a.generation);
  const games = Math.max(0, ...run.clock.map((entry) => entry.games ?? 0));
  const evaluations = all.filter(({ state }) => state !== 'lost').reduce((sum, one) => sum + (one.evaluations_per_second ?? 0), 0);
  const tile = (name, value, note) => h('div', {}, h('dt', {}, name), h('dd', {}, value), h('dd', { class: 'note' }, note));
  return h('dl', { class: 'tiles' },
    tile('Newest network', newest?.name ?? 'none', newest ? moment(newest.time) : 'the trainer writes the first'),
    tile('Rating', number(rated[0]?.rating), rated.length ? `${interval(rated[0])}, network ${rated[0].player}` : 'not measured yet'),
    tile('Games', compact(games), 'until the newest network'),
    tile('Games an hour', ...gameSpeed(run.game_speed)),
    tile('Time left', ...timeLeft(run)),
    tile('Training step', number(trainer?.step ?? null), trainer ? `${number(trainer.rows_per_second)} rows/s` : 'no step yet'),
    tile('Policy accuracy', percent(trainer?.policy_accuracy, 1), `value loss ${compact(trainer?.value_loss)}`),
    tile('Evaluations a second', compact(evaluations), 'all running generators'));
}

function gameSpeed(speed) {
  if (!speed) return ['–', 'known from the second shard on'];
  return [compact(speed.games_an_hour), `in the ${duration(speed.seconds)} until ${duration(speed.seconds_since)} ago`];
}

function timeLeft({ time_left: left, trainer_is_running: isRunning }) {
  if (!left) return ['–', 'not known'];
  if (!left.generations) return ['none', 'all networks are trained'];
  const networks = left.generations === 1 ? '1 network to train' : `${number(left.generations)} networks to train`;
  return [left.seconds === null ? '–' : duration(left.seconds), isRunning ? networks : `${networks}, once the loop runs`];
}

function workInWords(run) {
  const lines = [run.trainer_is_running ? trainerInWords(run) : 'The trainer is not running.'];
  const running = run.generators.filter(({ state }) => state !== 'lost');
  const lost = run.generators.filter(({ state }) => state === 'lost');
  if (!running.length) lines.push('No generator is running.');
  for (const one of running) lines.push(generatorInWords(one));
  for (const one of lost) {
    const silence = duration(one.seconds_ago);
    const wait = one.is_elsewhere ? 'on its machine, until it starts again' : 'for it, or for the next generator that starts';
    lines.push(`Generator ${one.number} of worker ${one.worker} has ended, ${silence} ago. Its games in flight wait ${wait}.`);
  }
  return h('ul', { class: 'plain' }, lines.map((line) => h('li', {}, line)));
}

function trainerInWords(run) {
  const { phase, time, trainer, waiting } = run;
  if (!phase) return trainingInWords(run);
  const since = `It began ${duration(Math.max(0, time - phase.time))} ago.`;
  const left = run.time_left?.generations && run.time_left.seconds !== null
    ? ` All networks are trained in about ${duration(run.time_left.seconds)}.` : '';
  const network = networkName(phase.generation);
  if (phase.phase === 'self_play') return `The loop collects games for network ${network}. ${since}${left}`;
  if (phase.phase === 'matches') return `The loop measures network ${network} in matches. ${since}${left}`;
  const isOld = !trainer || trainer.time < phase.time;
  const begins = `The loop trains network ${network}.${waiting ? ` It waits: ${waiting}.` : ''}`;
  return `${isOld ? begins : trainingInWords(run)} ${since}${left}`;
}

function trainingInWords({ trainer, time, waiting }) {
  if (!trainer) return 'The trainer is running. It has not made a step yet.';
  const at = `step ${number(trainer.step)}, ${duration(Math.max(0, time - trainer.time))} ago`;
  const speed = `It waits for rows ${percent(trainer.waiting)} of the time. Its learning rate is ${compact(trainer.learning_rate)}.`;
  const words = `The trainer is running on network ${networkName(trainer.generation)}: ${at}.`;
  return waiting ? `${words} It waits: ${waiting}.` : `${words} ${speed}`;
}

function generatorInWords(one) {
  const target = one.target_games ? ` of ${number(one.target_games)}` : '';
  const left = one.seconds_left ? `, for about ${duration(one.seconds_left)} more` : one.target_games ? '' : ', until it is stopped';
  const where = `${one.host} (${one.device})`;
  return `Generator ${one.number} is running on ${where} with network ${one.network}: ${number(one.games)}${target} games${left}.`;
}

function generators(list) {
  if (!list.length) return '';
  const rows = list.map((one) => [
    String(one.number),
    h('span', { class: `state ${one.state}` }, one.state.replaceAll('_', ' ')),
    `${duration(one.seconds_ago)} ago`,
    one.worker === one.host || !one.host ? one.worker : `${one.worker} on ${one.host}`,
    one.device || '–',
    one.network || '–',
    one.target_games ? `${number(one.games)} / ${number(one.target_games)}` : number(one.games),
    compact(one.evaluations_per_second),
    compact(one.turns_per_second),
    number(one.mean_game_turns, 1),
    percent(one.gold_share),
    number(one.unfinished),
    one.state !== 'lost' ? duration(one.seconds_left) : '–',
  ]);
  const figures = ['Games', 'Evaluations/s', 'Turns/s', 'Mean length', 'Won by Gold', 'Unfinished', 'Time left'];
  const columns = ['Generator', 'State', 'Heard', 'Where', 'Device', 'Network', ...figures];
  return table(columns, rows, { numeric: figures, caption: 'Generators' });
}

function settings({ config, changes }) {
  const rows = [...changes].reverse().map((change) => [moment(change.time), networkName(change.generation),
    h('span', { class: 'wrap' }, change.text)]);
  return section('Settings',
    rows.length ? table(['When', 'Network', 'What changed'], rows) : note('No setting has changed since the run began.'),
    h('details', {}, h('summary', {}, 'The whole configuration'), 
      h('pre', { tabindex: 0 }, config ?? 'The configuration could not be read.')));
}

function networks(run) {
  const rating = new Map((run.ratings?.players ?? []).map((player) => [player.player, player]));
  const rows = run.networks.slice(-200).reverse().map(({ name, time, bytes: size }) => {
    const rated = rating.get(name);
    return [h('a', { href: `#/games?network=${encodeURIComponent(name)}` }, name), moment(time), bytes(size),
      rated ? `${number(rated.rating)} (${interval(rated)})` : '–'];
  });
  return section('Networks', table(['Network', 'Written', 'Size', 'Rating'], rows, { numeric: ['Size', 'Rating'] }));
}

function matches({ matches: list, disk }) {
  const link = (name) => h('a', { href: `#/games?source=${encodeURIComponent(name)}` }, name);
  const rows = list.map(({ name, games, finished }) => [link(name), number(games), finished ? 'finished' : 'not finished']);
  return section('Matches and disk',
    rows.length ? table(['Match', 'Games', 'State'], rows, { numeric: ['Games'] }) : note('No match has been played.'),
    facts([...disk, { folder: 'together', bytes: disk.reduce((sum, folder) => sum + folder.bytes, 0) }]
      .map(({ folder, bytes: size }) => [folder === '.' ? 'Other files' : capital(folder), bytes(size)])));
}
