package demo

import (
	"context"
	"embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

//go:embed data/*.csv
var bundled embed.FS

const (
	fileScheme = "demo://files/"
	maxFile    = 4 << 20 // bytes of a CSV file
	bundleDir  = "data"
)

var csvTool = toolkit.Tool{
	Name:  "analyze_csv",
	Title: "CSV analysis (分析CSV)",
	Description: `Computes sum (求和), average (平均值) and count (计数) of every numeric column of a CSV file
		(分析CSV文件). Bundled files: sales.csv, visitors.csv, employees.csv; files of the scratch folder work
		too, e.g. reports/expenses.csv. Columns that hold other things than numbers are listed as skipped;
		empty cells do not count. Reports its progress if asked to.`,
	Hints: lookup,
	Examples: []toolkit.Example{
		{Ask: "Sum up the sales", Arguments: `{"filepath":"sales.csv","operations":["sum"]}`},
		{Ask: "分析 visitors.csv", Arguments: `{"filepath":"visitors.csv"}`},
	},
}

type csvQuery struct {
	Filepath   string   `json:"filepath" desc:"CSV file (文件路径), e.g. sales.csv" min:"1" max:"1000" example:"sales.csv"`
	Operations []string `json:"operations,omitempty" desc:"What to compute (计算方式). Optional; everything if left out." enum:"sum,average,count" min:"1" unique:"true"`
}

type analysis struct {
	File    string   `json:"file" desc:"The file that was read"`
	Rows    int      `json:"rows" desc:"Number of rows without the header (行数)" min:"0"`
	Columns []column `json:"columns" desc:"Numeric columns, in the order of the file (数值列)"`
	Skipped []string `json:"skipped" desc:"Columns that are not numeric"`
}

type column struct {
	Name    string      `json:"name" md:"name"`
	Sum     json.Number `json:"sum,omitempty" desc:"Exact sum (总和)"`
	Average json.Number `json:"average,omitempty" desc:"Mean of the cells that are not empty, to six decimals (平均值)"`
	Count   *int        `json:"count,omitempty" desc:"Number of cells that are not empty (计数)" min:"0"`
}

func (d *Demo) analyzeCSV(ctx context.Context, args csvQuery) (analysis, error) {
	name := path.Clean(strings.TrimPrefix(args.Filepath, fileScheme))
	text, err := d.readFile(name)
	if err != nil {
		return analysis{}, err
	}
	r := csv.NewReader(strings.NewReader(text))
	rows, err := r.ReadAll()
	if err != nil {
		return analysis{}, toolkit.Refuse("%s is not a CSV file: %v.", name, err)
	}
	if len(rows) == 0 {
		return analysis{}, toolkit.Refuse("%s is empty: a CSV file starts with a line of column names.", name)
	}
	totals, err := count(ctx, rows)
	if err != nil {
		return analysis{}, err
	}
	found := analysis{File: name, Rows: len(rows) - 1}
	for i, t := range totals {
		if t.text || t.cells == 0 {
			found.Skipped = append(found.Skipped, rows[0][i])
			continue
		}
		found.Columns = append(found.Columns, t.column(rows[0][i], args.Operations))
	}
	return found, nil
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
		return "", toolkit.Refuse("%s is too large: at most %d bytes are analysed.", name, maxFile)
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
	return toolkit.Refuse("There is no file %q. CSV files: %s.", name, strings.Join(append(bundledFiles(), known...), ", "))
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
func count(ctx context.Context, rows [][]string) ([]total, error) {
	totals := make([]total, len(rows[0]))
	body := rows[1:]
	step := max(1, (len(body)+9)/10)
	for i, row := range body {
		for j, cell := range row {
			totals[j].add(strings.TrimSpace(cell))
		}
		if done := i + 1; done%step == 0 || done == len(body) {
			toolkit.Progress(ctx, float64(done), float64(len(body)), fmt.Sprintf("%d of %d rows", done, len(body)))
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
	if !isNumber(cell) {
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

// Limits of a number in a cell: exact sums write numbers out.
const (
	maxDigits   = 1000
	maxExponent = 1000
)

// isNumber tells whether a cell is a JSON number that can be written out at a
// reasonable length.
func isNumber(cell string) bool {
	if len(cell) > maxDigits || !strings.ContainsAny(cell[:1], "-0123456789") || !json.Valid([]byte(cell)) {
		return false
	}
	if i := strings.IndexAny(cell, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(cell[i+1:])
		return err == nil && exponent <= maxExponent && exponent >= -maxExponent
	}
	return true
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
