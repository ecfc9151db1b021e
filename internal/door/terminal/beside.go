package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Beside prints two JSON documents side by side, as wide as the screen allows,
// and marks the lines that only one of them has.
func (s *Screen) Beside(leftTitle string, left json.RawMessage, rightTitle string, right json.RawMessage) {
	width := 60
	if s.Live {
		width = max((s.Width()-5)/2, 28)
	}
	a, b := indented(left), indented(right)
	s.Printf("  %s   %s\n", s.Faint(cell(leftTitle, width)), s.Faint(rightTitle))
	for _, row := range align(a, b) {
		l, r := cell(row[0], width), cell(row[1], width)
		mark := " "
		switch {
		case row[0] == row[1]:
		case row[1] == "":
			mark, l = "-", s.Bad(l)
		case row[0] == "":
			mark, r = "+", s.Good(r)
		}
		s.Printf("%s\n", strings.TrimRight(fmt.Sprintf("  %s %s %s", l, mark, r), " "))
	}
}

func indented(raw json.RawMessage) []string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", " ") != nil {
		return []string{Visible(string(raw))}
	}
	return strings.Split(Visible(b.String()), "\n")
}

// cell returns text in exactly n columns, as far as each character takes one.
func cell(text string, n int) string {
	runes := []rune(text)
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return fmt.Sprintf("%s%s", text, strings.Repeat(" ", n-len(runes)))
}

// align pairs the lines of two texts by their longest common subsequence. Texts
// of thousands of lines are paired line by line: nobody reads those.
func align(a, b []string) [][2]string {
	if len(a)*len(b) > 4_000_000 {
		var rows [][2]string
		for i := range max(len(a), len(b)) {
			var row [2]string
			if i < len(a) {
				row[0] = a[i]
			}
			if i < len(b) {
				row[1] = b[i]
			}
			rows = append(rows, row)
		}
		return rows
	}
	common := make([][]int32, len(a)+1) // lines that a[i:] and b[j:] share
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var rows [][2]string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			rows = append(rows, [2]string{a[i], b[j]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			rows = append(rows, [2]string{a[i], ""})
			i++
		default:
			rows = append(rows, [2]string{"", b[j]})
			j++
		}
	}
	return rows
}
