// Charts, drawn by uPlot: zoom by dragging, buttons or keys, and values under the pointer or the keyboard's cursor.

import { announce, button, h } from './dom.js';
import uPlot from './uplot.js';

const all = new Set();
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The colours changed: draws all charts anew. */
export const redrawCharts = () => all.forEach((chart) => chart.plot?.redraw(false));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawCharts);

export class Chart {
  /**
   * `series` are `{label, color, points, dash, format, isHidden, scale}`, colours by their names in the style sheet.
   * Hidden ones have values to read alone. `yRange` fixes the range of values. `isExact`: values of other places are not read.
   * `overlay(plot, context)` draws on top. `onPick(index)` is called on a click. `note` stands below the title.
   */
  constructor(options) {
    this.options = options;
    this.zoom = null;
    this.holder = h('div', { class: 'plot' });
    const control = (text, label, act) => button(text, act, { 'aria-label': `${options.title}: ${label}`, title: label });
    const controls = h('div', { class: 'zoom' }, control('◂', 'earlier', () => this.pan(-1)), control('▸', 'later', () => this.pan(1)),
      control('−', 'zoom out', () => this.zoomBy(2)), control('+', 'zoom in', () => this.zoomBy(0.5)),
      control('all', 'show all', () => this.setZoom(null)));
    const kind = options.onPick ? 'chart' : 'chart keys';
    this.element = h('figure', { class: kind, tabindex: 0, role: 'group', onkeydown: (event) => this.key(event) },
      h('figcaption', {}, h('strong', {}, options.title), options.note ? h('span', { class: 'note' }, options.note) : null, controls),
      this.holder);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.holder);
    all.add(this);
  }

  get height() {
    return this.options.height ?? 190;
  }

  setData(data) {
    this.data = data;
    const isKnown = (value) => value !== null && value !== undefined;
    this.element.classList.toggle('empty', !data.slice(1).some((column) => column.some(isKnown)));
    this.describe();
    if (!this.plot) {
      this.resize();
      return;
    }
    this.isOwn = true;
    this.plot.setData(data, !this.zoom);
    if (this.zoom) this.plot.setScale('x', this.zoom);
    this.isOwn = false;
    this.readLast();
  }

  resize() {
    const width = this.holder.clientWidth;
    if (!width || !this.data) return;
    if (this.plot) this.plot.setSize({ width, height: this.height });
    else this.plot = new uPlot(this.plotOptions(width), this.data, this.holder);
    this.readLast();
  }

  plotOptions(width) {
    const { series, xLabel, xFormat, xTicks, yFormat, yRange } = this.options;
    const grid = { stroke: () => css('--grid'), width: 1 };
    const axis = { stroke: () => css('--muted'), grid, ticks: { show: false }, font: '12px system-ui' };
    return {
      width,
      height: this.height,
      cursor: { drag: { x: true, y: false }, points: { size: 7 }, ...(this.options.isExact ? {} : { dataIdx: nearestOf }) },
      scales: { x: { time: false, range: wide }, y: yRange ? { range: yRange } : {} },
      axes: [
        { ...axis, size: 30, values: (plot, ticks) => ticks.map((tick) => (xTicks ?? xFormat ?? compact)(tick)) },
        { ...axis, size: 48, values: (plot, ticks) => ticks.map((tick) => (yFormat ?? compact)(tick)) },
      ],
      series: [{ label: xLabel, value: (plot, value) => known(value, xFormat) }, ...series.map(plotSeries(yFormat))],
      hooks: {
        draw: [(plot) => this.options.overlay?.(plot, plot.ctx)],
        setScale: [(plot, key) => this.scaled(plot, key)],
        ready: [(plot) => this.listen(plot)],
      },
    };
  }

  // Where nothing is pointed at, the legend has the last values, or those at `restAt()`.
  readLast() {
    const count = this.data[0].length;
    if (!count || this.plot.cursor.left >= 0) return;
    const at = this.options.restAt?.();
    this.plot.setLegend({ idxs: this.data.map((column) => at ?? this.nearest(column, count - 1)) });
  }

  nearest(column, index) {
    return this.options.isExact ? index : nearestKnown(column, index);
  }

  listen(plot) {
    // After the chart has cleared its legend.
    const readLast = () => setTimeout(() => this.plot && this.readLast());
    readLast();
    plot.over.addEventListener('mouseleave', readLast);
    let pressedAt = 0;
    plot.over.addEventListener('mousedown', (event) => { pressedAt = event.clientX; });
    plot.over.addEventListener('click', (event) => {
      if (!this.options.onPick || Math.abs(event.clientX - pressedAt) > 4) return;
      this.options.onPick(plot.posToIdx(event.offsetX));
    });
  }

  scaled(plot, key) {
    if (key !== 'x' || this.isOwn) return;
    const { min, max } = plot.scales.x;
    const xs = plot.data[0];
    this.zoom = min > xs[0] || max < xs[xs.length - 1] ? { min, max } : null;
  }

  setZoom(zoom) {
    if (!this.plot || !this.data[0].length) return;
    this.zoom = zoom;
    const xs = this.data[0];
    this.isOwn = true;
    this.plot.setScale('x', zoom ?? { min: xs[0], max: xs[xs.length - 1] });
    this.isOwn = false;
  }

  zoomBy(factor) {
    const [low, high, min, max] = this.limits();
    const half = ((max - min) * factor) / 2;
    const middle = (min + max) / 2;
    const zoom = { min: Math.max(low, middle - half), max: Math.min(high, middle + half) };
    this.setZoom(zoom.min <= low && zoom.max >= high ? null : zoom);
  }

  pan(direction) {
    const [low, high, min, max] = this.limits();
    const by = Math.min(high - max, Math.max(low - min, (direction * (max - min)) / 3));
    if (by) this.setZoom({ min: min + by, max: max + by });
  }

  limits() {
    const xs = this.data[0];
    const { min, max } = this.plot.scales.x;
    return [xs[0], xs[xs.length - 1], min, max];
  }

  key(event) {
    if (event.target !== this.element || !this.plot || !this.data[0].length) return;
    const arrows = { ArrowLeft: () => this.moveCursor(-1), ArrowRight: () => this.moveCursor(1) };
    const act = {
      ...(this.options.onPick ? {} : arrows),
      '+': () => this.zoomBy(0.5),
      '-': () => this.zoomBy(2),
      0: () => this.setZoom(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  moveCursor(by) {
    const [first, last] = this.plot.series[0].idxs;
    const index = Math.min(last, Math.max(first, (this.plot.cursor.idx ?? last + 1) + by));
    this.plot.setCursor({ left: this.plot.valToPos(this.data[0][index], 'x'), top: 10 });
    announce(this.valuesAt(index));
  }

  valuesAt(index) {
    const { series, xLabel, xFormat, yFormat } = this.options;
    const at = (column) => column[this.nearest(column, index)];
    const values = series.map(({ label, format }, one) => `${label} ${known(at(this.data[one + 1]), format ?? yFormat)}`);
    return [`${xLabel} ${known(this.data[0][index], xFormat)}`, ...values].join(', ');
  }

  describe() {
    const count = this.data[0].length;
    const newest = count ? `Last: ${this.valuesAt(count - 1)}.` : 'No values yet.';
    this.element.setAttribute('aria-label', `Chart: ${this.options.title}. ${newest} Arrow keys read values, plus and minus zoom.`);
  }

  redraw() {
    if (!this.plot) return;
    this.plot.redraw(false);
    this.readLast();
  }

  destroy() {
    this.observer.disconnect();
    this.plot?.destroy();
    all.delete(this);
  }
}

const known = (value, format) => (value === null || value === undefined ? '–' : (format ?? compact)(value));

// Training and validation have values at different steps.
function nearestKnown(column, index) {
  for (let by = 0; by < column.length; by += 1) {
    if (known(column[index - by]) !== '–') return index - by;
    if (known(column[index + by]) !== '–') return index + by;
  }
  return index;
}

const nearestOf = (plot, series, index) => (index === null ? null : nearestKnown(plot.data[series], index));

// A single point needs a range too.
const wide = (plot, low, high) => (low === high ? [low - 1, high + 1] : [low, high]);

const plotSeries = (yFormat) => ({ label, color, points = false, dash, format, isHidden = false, scale = 'y' }) => ({
  label,
  scale,
  stroke: () => (isHidden ? 'transparent' : css(color)),
  width: isHidden ? 0 : 1.75,
  dash,
  spanGaps: true,
  // A line needs two points to be seen.
  points: {
    show: (plot, index) => points || plot.data[index].filter((value) => known(value) !== '–').length < 2,
    size: 6,
    fill: () => (isHidden ? 'transparent' : css(color)),
  },
  value: (plot, value) => known(value, format ?? yFormat),
});

export function compact(value) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size >= 10000) return Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(value);
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

export const share = (value) => (value === null || value === undefined ? '–' : `${Number((100 * value).toFixed(1))} %`);

/** Vertical bars from the columns `low` to `high` of the plot's data. */
export function errorBars(low, high, color) {
  return (plot, context) => {
    context.save();
    context.strokeStyle = css(color);
    context.lineWidth = 1.25 * devicePixelRatio;
    context.setLineDash([]);
    plot.data[0].forEach((x, index) => {
      const [from, to] = [plot.data[low][index], plot.data[high][index]];
      if (from === null || to === null || x < plot.scales.x.min || x > plot.scales.x.max) return;
      const left = plot.valToPos(x, 'x', true);
      const [bottom, top] = [plot.valToPos(from, 'y', true), plot.valToPos(to, 'y', true)];
      context.beginPath();
      context.moveTo(left, bottom);
      context.lineTo(left, top);
      for (const y of [bottom, top]) {
        context.moveTo(left - 3 * devicePixelRatio, y);
        context.lineTo(left + 3 * devicePixelRatio, y);
      }
      context.stroke();
    });
    context.restore();
  };
}

/** A vertical line at `at()`, and dots `{x, y, color}` from `dots()`. */
export function markers(at, dots = () => []) {
  return (plot, context) => {
    context.save();
    const x = plot.valToPos(at(), 'x', true);
    const { left, top, width, height } = plot.bbox;
    if (x >= left && x <= left + width) {
      context.fillStyle = css('--text');
      context.fillRect(x - devicePixelRatio / 2, top, devicePixelRatio, height);
    }
    for (const dot of dots()) {
      const cx = plot.valToPos(dot.x, 'x', true);
      if (cx < left || cx > left + width) continue;
      context.fillStyle = css(dot.color);
      context.beginPath();
      context.arc(cx, plot.valToPos(dot.y, 'y', true), 4.5 * devicePixelRatio, 0, 2 * Math.PI);
      context.fill();
    }
    context.restore();
  };
}

/** Merges tables of columns over different x values into one. */
export const join = (tables) => uPlot.join(tables);
