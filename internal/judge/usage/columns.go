package usage

import (
	"fmt"
	"strings"
)

// keys are the columns that say what a row is the sum of.
var keys = []string{"period", "hours", "caller", "model", "server", "tool"}

// numbered are the columns of a [Sum], in the order of its numbers.
var numbered = func() []string {
	all := []string{"calls", "errors", "micros", "input", "output", "cached", "reasoning", "repairs", "cuts", "cost"}
	for i := range (Times{}) {
		all = append(all, fmt.Sprint("t", i))
	}
	return all
}()

// numbers are the places of a sum's numbers.
func (s *Sum) numbers() []*int64 {
	all := []*int64{&s.Calls, &s.Errors, &s.Micros, &s.Input, &s.Output, &s.Cached, &s.Reasoning, &s.Repairs, &s.Cuts, &s.Cost}
	for i := range s.Times {
		all = append(all, &s.Times[i])
	}
	return all
}

// list writes something of each column.
func list(columns []string, each func(i int, column string) string) string {
	all := make([]string, len(columns))
	for i, column := range columns {
		all[i] = each(i, column)
	}
	return strings.Join(all, ", ")
}

func plain(_ int, column string) string { return column }

// Statements that write rows. What is there already is added to.
var (
	into = "INSERT INTO usage (" + list(append(keys[:len(keys):len(keys)], numbered...), plain) + ")\n"
	onto = "\nON CONFLICT (" + list(keys, plain) + ") DO UPDATE SET " +
		list(numbered, func(_ int, c string) string { return c + " = usage." + c + " + excluded." + c })

	// addRow adds a sum to its row.
	addRow = into + "VALUES (" + list(append(keys[:len(keys):len(keys)], numbered...), func(i int, _ string) string { return fmt.Sprint("$", i+1) }) + ")" + onto
	// addDays adds rows of a period to those of their days, as [some] says which.
	addDays = into + "SELECT period / 24 * 24, 24, caller, model, server, tool, " + list(numbered, func(_ int, c string) string { return "sum(" + c + ")" }) +
		"\nFROM usage WHERE period = $1 AND hours = $2 AND caller <= $3 GROUP BY period / 24 * 24, caller, model, server, tool" + onto
	// sumOfRows are the sums of rows that are read together.
	sumOfRows = list(numbered, func(_ int, c string) string { return "CAST(sum(" + c + ") AS BIGINT)" })
)
