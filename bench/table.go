package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// A row is one line of the table: our figure, the one that it is compared with,
// and the ratio that is wanted.
type row struct {
	item, what   string
	ours, theirs string
	ratio        float64 // zero for none
	target       string
	met, judged  bool
}

// compare adds a row whose ratio is ours to theirs. A wanted ratio is a least one
// when it is positive, a most one when it is negative; zero wants nothing.
func (b *bench) compare(item, what string, ours, theirs float64, show func(float64) string, wanted float64) {
	r := row{item: item, what: what, ours: show(ours), theirs: show(theirs), ratio: ours / theirs}
	switch {
	case wanted > 0:
		r.target, r.judged, r.met = fmt.Sprintf("≥ %.2f", wanted), true, r.ratio >= wanted
	case wanted < 0:
		r.target, r.judged, r.met = fmt.Sprintf("≤ %.2f", -wanted), true, r.ratio <= -wanted
	}
	b.rows = append(b.rows, r)
}

// limit adds a row with a figure of ours that may be at most that large.
func (b *bench) limit(item, what string, ours float64, show func(float64) string, most float64) {
	r := row{item: item, what: what, ours: show(ours)}
	if most > 0 {
		r.target, r.judged, r.met = "≤ "+show(most), true, ours <= most
	}
	b.rows = append(b.rows, r)
}

func (r row) verdict() string {
	switch {
	case !r.judged:
		return ""
	case r.met:
		return "met"
	default:
		return "MISSED"
	}
}

func (r row) cells() []string {
	ratio := ""
	if r.ratio != 0 {
		ratio = fmt.Sprintf("%.2f", r.ratio)
	}
	return []string{r.item, r.what, r.ours, r.theirs, ratio, r.target, r.verdict()}
}

var heads = []string{"", "what", "dragoman", "compared with", "ratio", "target", ""}

func (b *bench) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(heads, "\t"))
	for _, r := range b.rows {
		fmt.Fprintln(t, strings.Join(r.cells(), "\t"))
	}
	t.Flush()
	fmt.Fprintf(w, "\n%s\n", b.machine())
}

func (b *bench) markdown(w io.Writer) {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat(" --- |", len(heads)))
	for _, r := range b.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(r.cells(), " | "))
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
	commit := ""
	if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = ", commit " + string(bytes.TrimSpace(out))
	}
	return fmt.Sprintf("Medians of %d rounds on %s, %d cores, %s/%s, %s%s%s; load, upstream and servers on the same machine. %s.",
		b.rounds, cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), commit, load, time.Now().UTC().Format(time.DateOnly))
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
