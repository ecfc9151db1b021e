package console

import (
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/text/money"
)

// A chart is how much there was of something over time: a column for each part of the time.
// A column may have a part that is told apart, such as errors of calls.
type chart struct {
	// Figures are the sums, each with its name; the first is of the columns, and the second of
	// their parts.
	Figures []figure
	Columns []column
	// Most is what the highest column is.
	Most string
}

// A figure is a number with its name, and with what draws it.
type figure struct{ Name, Value, Class string }

// A column is a part of the time. Y and High are of all, and PartY and PartHigh of the part,
// in the measure of the picture.
type column struct {
	X, Wide         int
	Y, High         int
	PartY, PartHigh int
	From            time.Time
	Whole, Part     string
	whole, part     int64
}

// The measure of a picture, which is drawn as large as there is room.
const (
	chartWide = 600
	chartHigh = 120
)

// A measured is what a chart shows of a sum.
type measured struct {
	names [2]string // of all, and of the part; the second may be empty
	of    func(*usage.Sum) (whole, part int64)
	write func(int64) string
}

// The charts that there are.
var (
	callsChart = measured{[2]string{"Calls", "errors"}, func(s *usage.Sum) (int64, int64) { return s.Calls, s.Errors }, number}
	timesChart = measured{[2]string{"95 % within", "50 % within"}, func(s *usage.Sum) (int64, int64) {
		return s.Times.Within(0.95).Microseconds(), s.Times.Within(0.5).Microseconds()
	}, long}
	tokensChart  = measured{[2]string{"Tokens", "out"}, func(s *usage.Sum) (int64, int64) { return s.Input + s.Output, s.Output }, number}
	repairsChart = measured{[2]string{"Repairs of arguments", ""}, func(s *usage.Sum) (int64, int64) { return s.Repairs, 0 }, number}
	cutsChart    = measured{[2]string{"Results that were cut", ""}, func(s *usage.Sum) (int64, int64) { return s.Cuts, 0 }, number}
	costChart    = measured{[2]string{"Cost", ""}, func(s *usage.Sum) (int64, int64) { return s.Cost, 0 }, money.Format}
)

func number(n int64) string { return thousands(int(n)) }

// long writes a time in microseconds, with three digits.
func long(micros int64) string {
	d := time.Duration(micros) * time.Microsecond
	switch {
	case micros == 0:
		return "–"
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// drawn draws what a chart measures of sums, one for each part of the time, and of all of it.
func drawn(m measured, over []usage.Sum, all *usage.Sum, from time.Time, step time.Duration) chart {
	c := chart{Columns: make([]column, len(over))}
	highest := int64(0)
	for i := range over {
		at := &c.Columns[i]
		at.whole, at.part = m.of(&over[i])
		highest = max(highest, at.whole)
		at.From, at.Whole = from.Add(time.Duration(i)*step), m.write(at.whole)
		if m.names[1] != "" {
			at.Part = m.write(at.part)
		}
	}
	most := max(highest, 1)
	for i := range c.Columns {
		at := &c.Columns[i]
		at.X = i * chartWide / len(over)
		at.Wide = max((i+1)*chartWide/len(over)-at.X-2, 1)
		at.High, at.PartHigh = high(at.whole, most), high(min(at.part, at.whole), most)
		at.Y, at.PartY = chartHigh-at.High, chartHigh-at.PartHigh
	}
	c.Most = m.write(highest)
	whole, part := m.of(all)
	c.Figures = []figure{{m.names[0], m.write(whole), "whole"}}
	if m.names[1] != "" {
		c.Figures = append(c.Figures, figure{m.names[1], m.write(part), "part"})
	}
	return c
}

// high is the height of a number; what is not nothing is seen.
func high(n, most int64) int {
	if n <= 0 {
		return 0
	}
	return max(int(float64(n)/float64(most)*chartHigh), 2)
}

// Says tells the numbers of a chart to those who do not see it, in the words of a language.
func (c chart) Says(lang string) string {
	var b strings.Builder
	for i, f := range c.Figures {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(say(lang, f.Name) + " " + f.Value)
	}
	return b.String()
}
