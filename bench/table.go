package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figures are what was measured, by contender and round; none for one that was
// not measured.
type figures [contenders][]float64

// of is the median of a contender's rounds, and whether there were any.
func (f figures) of(who contender) (float64, bool) {
	return median(slices.Clone(f[who])), len(f[who]) > 0
}

// ratio is ours to somebody's: that of the medians, and those of the rounds, each
// of which met the same neighbours.
func (f figures) ratio(to contender) (ratio float64, rounds []float64) {
	mine, _ := f.of(ours)
	theirs, ok := f.of(to)
	if !ok || theirs == 0 {
		return 0, nil
	}
	for i := range min(len(f[ours]), len(f[to])) {
		rounds = append(rounds, f[ours][i]/f[to][i])
	}
	return mine / theirs, rounds
}

// A target is what is wanted of a figure of ours: a least or a most ratio to
// somebody's, or a most value.
type target struct {
	least, most float64
	against     contender
	value       float64
	text        string // empty: nothing is wanted
}

func atLeast(ratio float64, who contender) target {
	return target{least: ratio, against: who, text: fmt.Sprintf("≥ %.2f × %s", ratio, contenderNames[who])}
}

func atMost(ratio float64, who contender) target {
	return target{most: ratio, against: who, text: fmt.Sprintf("≤ %.2f × %s", ratio, contenderNames[who])}
}

func limit(value float64, show func(float64) string) target {
	return target{value: value, text: "≤ " + show(value)}
}

// judge tells whether the target is met, and what the worst round came to.
func (t target) judge(f figures, show func(float64) string) (met bool, worst string) {
	if t.value > 0 {
		mine, _ := f.of(ours)
		return mine <= t.value, show(slices.Max(f[ours]))
	}
	ratio, rounds := f.ratio(t.against)
	if len(rounds) == 0 {
		return false, ""
	}
	if t.least > 0 {
		return ratio >= t.least, fmt.Sprintf("%.2f", slices.Min(rounds))
	}
	return ratio <= t.most, fmt.Sprintf("%.2f", slices.Max(rounds))
}

// A row is one line of the table.
type row struct {
	item, what string
	figures    figures
	show       func(float64) string
	target     target
}

func (b *bench) add(r row) { b.rows = append(b.rows, r) }

var heads = []string{"", "what", "dragoman", "before", "null", "proxy", "direct", "/ null", "/ proxy", "/ direct", "target", "worst round", ""}

func (r row) cells() []string {
	cells := []string{r.item, r.what}
	for who := range contenders {
		text := ""
		if v, ok := r.figures.of(who); ok {
			text = r.show(v)
		}
		cells = append(cells, text)
	}
	for _, who := range []contender{null, proxy, direct} {
		text := ""
		if ratio, _ := r.figures.ratio(who); ratio != 0 {
			text = fmt.Sprintf("%.2f", ratio)
		}
		cells = append(cells, text)
	}
	if r.target.text == "" {
		return append(cells, "", "", "")
	}
	met, worst := r.target.judge(r.figures, r.show)
	verdict := "MISSED"
	if met {
		verdict = "met"
	}
	return append(cells, r.target.text, worst, verdict)
}

// lines are the heads and the rows, without the column of an older dragoman where
// there is none.
func (b *bench) lines() [][]string {
	all := [][]string{slices.Clone(heads)}
	for _, r := range b.rows {
		all = append(all, r.cells())
	}
	if b.before == "" {
		for i := range all {
			all[i] = slices.Delete(all[i], 3, 4)
		}
	}
	return all
}

func (b *bench) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range b.lines() {
		fmt.Fprintln(t, strings.Join(line, "\t"))
	}
	t.Flush()
	fmt.Fprintf(w, "\n%s\n", b.machine())
}

func (b *bench) markdown(w io.Writer) {
	for i, line := range b.lines() {
		fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat(" --- |", len(line)))
		}
	}
	fmt.Fprintf(w, "\n%s\n", b.machine())
}

// machine says where and how the figures were measured.
func (b *bench) machine() string {
	cpu := "unknown processor"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	load := ""
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = ", load " + strings.Fields(string(data))[0] + " at the end"
	}
	older := ""
	if b.before != "" {
		older = ", before is " + filepath.Base(b.before)
	}
	commit := ""
	if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = ", commit " + string(bytes.TrimSpace(out))
	}
	return fmt.Sprintf("Medians of %d rounds on %s, %d cores, %s/%s, %s%s%s%s; load, upstream and servers on the same machine. %s.",
		b.rounds, cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), commit, older, load, time.Now().UTC().Format(time.DateOnly))
}

// How figures are shown.
func perSecond(v float64) string { return fmt.Sprintf("%.0f/s", v) }
func duration(v float64) string {
	switch {
	case v >= 1:
		return fmt.Sprintf("%.2f s", v)
	case v >= 1e-3:
		return fmt.Sprintf("%.2f ms", v*1e3)
	default:
		return fmt.Sprintf("%.1f µs", v*1e6)
	}
}
func kibibytes(v float64) string { return fmt.Sprintf("%.1f KiB", v/1024) }
func mebibytes(v float64) string { return fmt.Sprintf("%.1f MiB", v/(1<<20)) }
