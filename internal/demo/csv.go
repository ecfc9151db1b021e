package demo

import (
	"context"
	"embed"
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

//go:embed data/*.csv
var bundled embed.FS

const (
	fileScheme = "demo://files/"
	maxFile    = 4 << 20 // bytes of a CSV file
	bundleDir  = "data"
)

var csvTool = tool{
	name:  "analyze_csv",
	title: "CSV analysis (分析CSV)",
	description: `Computes sum (求和), average (平均值) and count (计数) of every numeric column of a CSV file
		(分析CSV文件). Bundled files: sales.csv, visitors.csv, employees.csv; files of the scratch folder work
		too, e.g. reports/expenses.csv. Columns that hold other things than numbers are listed as skipped;
		empty cells do not count. Reports its progress if asked to.`,
	input: `{
		"type": "object",
		"properties": {
			"filepath": {
				"type": "string",
				"minLength": 1,
				"maxLength": 1000,
				"description": "CSV file (文件路径), e.g. sales.csv",
				"examples": ["sales.csv"]
			},
			"operations": {
				"type": "array",
				"items": {"type": "string", "enum": ["sum", "average", "count"]},
				"minItems": 1,
				"uniqueItems": true,
				"description": "What to compute (计算方式). Optional; everything if left out."
			}
		},
		"required": ["filepath"],
		"additionalProperties": false
	}`,
	output: `{
		"type": "object",
		"properties": {
			"file": {"type": "string", "description": "The file that was read"},
			"rows": {"type": "integer", "minimum": 0, "description": "Number of rows without the header (行数)"},
			"columns": {
				"type": "array",
				"description": "Numeric columns, in the order of the file (数值列)",
				"items": {
					"type": "object",
					"properties": {
						"name": {"type": "string"},
						"sum": {"type": "number", "description": "Exact sum (总和)"},
						"average": {"type": "number", "description": "Mean of the cells that are not empty, to six decimals (平均值)"},
						"count": {"type": "integer", "minimum": 0, "description": "Number of cells that are not empty (计数)"}
					},
					"required": ["name"],
					"additionalProperties": false
				}
			},
			"skipped": {"type": "array", "items": {"type": "string"}, "description": "Columns that are not numeric"}
		},
		"required": ["file", "rows", "columns", "skipped"],
		"additionalProperties": false
	}`,
	hints: lookup,
}

type analysis struct {
	File    string   `json:"file"`
	Rows    int      `json:"rows"`
	Columns []column `json:"columns"`
	Skipped []string `json:"skipped"`
}

type column struct {
	Name    string         `json:"name"`
	Sum     jsontext.Value `json:"sum,omitzero"`
	Average jsontext.Value `json:"average,omitzero"`
	Count   *int           `json:"count,omitzero"`
}

func (d *Demo) analyzeCSV(ctx context.Context, args struct {
	Filepath   string   `json:"filepath"`
	Operations []string `json:"operations"`
}, report progress) (reply, error) {
	name := path.Clean(strings.TrimPrefix(args.Filepath, fileScheme))
	text, err := d.readFile(name)
	if err != nil {
		return reply{}, err
	}
	r := csv.NewReader(strings.NewReader(text))
	rows, err := r.ReadAll()
	if err != nil {
		return reply{}, refuse("%s is not a CSV file: %v.", name, err)
	}
	if len(rows) == 0 {
		return reply{}, refuse("%s is empty: a CSV file starts with a line of column names.", name)
	}
	totals, err := count(ctx, rows, report)
	if err != nil {
		return reply{}, err
	}
	found := analysis{File: name, Rows: len(rows) - 1, Columns: []column{}, Skipped: []string{}}
	for i, t := range totals {
		if t.text || t.cells == 0 {
			found.Skipped = append(found.Skipped, rows[0][i])
			continue
		}
		found.Columns = append(found.Columns, t.column(rows[0][i], args.Operations))
	}
	return reply{data: found}, nil
}

// readFile returns the text of a bundled file, or of one in the scratch folder.
func (d *Demo) readFile(name string) (string, error) {
	text, err := bundled.ReadFile(path.Join(bundleDir, name))
	if err == nil && fs.ValidPath(name) {
		return string(text), nil
	}
	err = d.scratch.use(func(root *os.Root) error {
		f, err := openFile(root, name)
		if err != nil {
			return noFile(root, name)
		}
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
		return err
	})
	if err != nil {
		return "", err
	}
	if len(text) > maxFile {
		return "", refuse("%s is too large: at most %d bytes are analysed.", name, maxFile)
	}
	return string(text), nil
}

// noFile tells a model which files it could have meant.
func noFile(root *os.Root, name string) error {
	others, err := files(root)
	if err != nil {
		return err
	}
	known := slices.DeleteFunc(others, func(f string) bool { return path.Ext(f) != ".csv" })
	return refuse("There is no file %q. CSV files: %s.", name, strings.Join(append(bundledFiles(), known...), ", "))
}

func bundledFiles() []string {
	entries, err := bundled.ReadDir(bundleDir)
	if err != nil {
		panic(fmt.Sprintf("demo: bundled files: %v", err)) // they are compiled in
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// A total is what one column adds up to.
type total struct {
	sum   big.Rat
	cells int  // that are not empty
	text  bool // something that is not a number was found
}

// count goes through the rows below the header and reports each tenth of them.
func count(ctx context.Context, rows [][]string, report progress) ([]total, error) {
	totals := make([]total, len(rows[0]))
	body := rows[1:]
	step := max(1, (len(body)+9)/10)
	for i, row := range body {
		for j, cell := range row {
			totals[j].add(strings.TrimSpace(cell))
		}
		if done := i + 1; done%step == 0 || done == len(body) {
			report(done, len(body), fmt.Sprintf("%d of %d rows", done, len(body)))
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	return totals, nil
}

func (t *total) add(cell string) {
	if t.text || cell == "" {
		return
	}
	v := jsontext.Value(cell)
	if !v.IsValid() || v.Kind() != '0' || modest(cell) != nil {
		t.text = true
		return
	}
	n, err := decimal(cell)
	if err != nil {
		t.text = true
		return
	}
	t.sum.Add(&t.sum, n)
	t.cells++
}

// column writes out the operations that were asked for; none means all.
func (t *total) column(name string, operations []string) column {
	wanted := func(op string) bool { return len(operations) == 0 || slices.Contains(operations, op) }
	c := column{Name: name}
	if wanted("sum") {
		c.Sum = number(&t.sum)
	}
	if wanted("average") {
		mean := new(big.Rat).Quo(&t.sum, new(big.Rat).SetInt64(int64(t.cells)))
		rounded, _ := new(big.Rat).SetString(mean.FloatString(6))
		c.Average = number(rounded)
	}
	if wanted("count") {
		c.Count = &t.cells
	}
	return c
}
