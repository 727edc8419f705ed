// The value curve of a game: win probabilities over its turns, with the shown turn marked.

import { Chart, markers, share } from './charts.js';

export class ValueCurve {
  /** `series` as for a chart. `onPick(turn)` is called on a click. */
  constructor(series, onPick) {
    this.at = 0;
    this.dots = [];
    this.labels = [];
    this.chart = new Chart({
      title: 'Win probability of Gold',
      xLabel: 'Before turn',
      xFormat: (index) => this.labels[index] ?? '',
      yFormat: share,
      yRange: [0, 1],
      height: 150,
      restAt: () => this.at,
      series,
      overlay: markers(() => this.at, () => this.dots),
      onPick: (index) => index !== null && index !== undefined && onPick(index),
    });
    this.element = this.chart.element;
  }

  setData(labels, columns, dots = []) {
    this.labels = labels;
    this.dots = dots;
    this.chart.setData([labels.map((_, index) => index), ...columns]);
    this.chart.redraw();
  }

  show(turn) {
    this.at = turn;
    this.chart.redraw();
  }

  destroy() {
    this.chart.destroy();
  }
}
