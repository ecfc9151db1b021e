package demo

import (
	"context"
	"encoding/csv"
	"fmt"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

// Limits of one tree. The bundled organisation fits; larger ones are cut and say so.
const (
	maxLevels    = 10
	maxReports   = 20  // direct reports listed for one employee
	maxEmployees = 500 // in one result
)

var employeeTool = toolkit.Tool{
	Name:  "query_employee_tree",
	Title: "Employee tree (员工组织架构)",
	Description: `Looks up an employee by id and, if asked to, the tree of everybody below (员工组织架构树, 下属).
		The demo company has 58 employees, E001 to E058; E001 is the CEO. The tree is in structuredContent;
		the text is only a summary. A tree that was cut says truncated: ask again with a larger maxDepth or
		with the id of a subordinate.`,
	Hints: lookup,
	Examples: []toolkit.Example{
		{Ask: "Who works for E002?", Arguments: `{"empId":"E002","includeSubordinates":true}`},
		{Ask: "查询 E001 的组织架构, 两层", Arguments: `{"empId":"E001","includeSubordinates":true,"maxDepth":2}`},
	},
	Advice: "Use a smaller maxDepth, or ask for a subordinate.",
	// The tree is long, and its text would only be the same again in a form that
	// is harder to read.
	SummaryOnly: true,
}

type employeeQuery struct {
	EmpID               string `json:"empId" desc:"Employee id (员工ID), e.g. E001" min:"1" max:"20" example:"E001"`
	IncludeSubordinates bool   `json:"includeSubordinates" desc:"Whether to list the people below (是否包含下属)" default:"false"`
	MaxDepth            int    `json:"maxDepth" desc:"Levels of subordinates to list (最大层级); only counts with includeSubordinates" default:"3" min:"1" max:"10"`
}

type employee struct {
	ID           string     `json:"id" md:"id"`
	Name         string     `json:"name" md:"name"`
	Title        string     `json:"title" desc:"Position (职位)"`
	Department   string     `json:"department"`
	Reports      int        `json:"reports" desc:"Number of direct reports, listed or not" min:"0"`
	Subordinates []employee `json:"subordinates,omitempty"`
}

type employeeTree struct {
	EmpID     string     `json:"empId" desc:"The employee that was asked for"`
	Total     int        `json:"total" desc:"Number of employees in tree (节点数)" min:"1"`
	Truncated bool       `json:"truncated" desc:"Whether somebody below was left out because of depth or breadth"`
	Tree      []employee `json:"tree" desc:"The employee, with the people below nested inside (层级结构)"`
}

func queryEmployeeTree(_ context.Context, args employeeQuery) (employeeTree, error) {
	company, err := bundledCompany()
	if err != nil {
		return employeeTree{}, err
	}
	id := strings.ToUpper(strings.TrimSpace(args.EmpID))
	boss, ok := company.people[id]
	if !ok {
		return employeeTree{}, toolkit.NotFound("No employee has the id %q. Ids run from E001 (the CEO) to E%03d.", args.EmpID, len(company.people))
	}
	tree := employeeTree{EmpID: id, Total: 1, Tree: []employee{boss}}
	if args.IncludeSubordinates {
		company.grow(&tree.Tree[0], min(args.MaxDepth, maxLevels), &tree)
	}
	return tree, nil
}

// Summary tells what was found and where it is.
func (t employeeTree) Summary() string {
	who := t.Tree[0]
	text := fmt.Sprintf("Found %s (%s), %s. Employees in the tree: %d (共找到 %d 个节点). "+
		"The tree with all details is in structuredContent (详细的层级数据在 structuredContent 中).",
		who.ID, who.Name, who.Title, t.Total, t.Total)
	switch {
	case t.Truncated:
		text += " Some people below were left out: use a larger maxDepth, or ask for a subordinate."
	case who.Reports > 0 && t.Total == 1:
		text += fmt.Sprintf(" Direct reports not listed: %d; set includeSubordinates to list them.", who.Reports)
	}
	return text
}

// A company is who there is and who works for whom.
type company struct {
	people  map[string]employee
	reports map[string][]string // in the order of the file
}

// grow lists the people below e, levels deep, and counts them in t.
func (c *company) grow(e *employee, levels int, t *employeeTree) {
	for i, id := range c.reports[e.ID] {
		if levels == 0 || i == maxReports || t.Total == maxEmployees {
			t.Truncated = true
			return
		}
		t.Total++
		e.Subordinates = append(e.Subordinates, c.people[id])
		c.grow(&e.Subordinates[len(e.Subordinates)-1], levels-1, t)
	}
}

var bundledCompany = sync.OnceValues(func() (*company, error) {
	f, err := bundled.Open("data/employees.csv")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read employees: %w", err)
	}
	return newCompany(rows[1:]), nil
})

// newCompany reads rows of id, name, title, department and the manager's id.
func newCompany(rows [][]string) *company {
	c := &company{map[string]employee{}, map[string][]string{}}
	for _, r := range rows {
		if boss := r[4]; boss != "" {
			c.reports[boss] = append(c.reports[boss], r[0])
		}
	}
	for _, r := range rows {
		c.people[r[0]] = employee{ID: r[0], Name: r[1], Title: r[2], Department: r[3], Reports: len(c.reports[r[0]])}
	}
	return c
}
