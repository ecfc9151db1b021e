package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	schemas "github.com/dragoman-mcp/dragoman/schema"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

// call runs a tool and returns its result with structuredContent as it came.
func call(t *testing.T, s *sdk.ClientSession, tool, arguments string) (text, data string, failed bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s %s: %d content blocks, want 1", tool, arguments, len(res.Content))
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*sdk.TextContent).Text, string(raw), res.IsError
}

func TestTools(t *testing.T) {
	d := newDemo(t)
	s := dial(t, d, legacy, nil)
	outputs := outputSchemas(t, s)

	for _, tt := range []struct {
		name, tool, arguments string
		want                  string   // the text block, exactly
		contains              []string // parts of the text block
		absent                string   // no part of the text block
		failed                bool
	}{
		{
			name: "weather, Chinese", tool: "get_weather", arguments: `{"city":"北京"}`,
			want: `{"temperature":22,"unit":"Celsius","condition":"多云","humidity":65}`,
		},
		{
			name: "weather, English", tool: "get_weather", arguments: `{"city":"Beijing"}`,
			want: `{"temperature":22,"unit":"Celsius","condition":"cloudy","humidity":65}`,
		},
		{
			name: "weather, loosely written", tool: "get_weather", arguments: `{"city":" NEW YORK City, USA"}`,
			want: `{"temperature":15,"unit":"Celsius","condition":"windy","humidity":56}`,
		},
		{
			name: "weather, accent left out", tool: "get_weather", arguments: `{"city":"Sao Paulo"}`,
			want: `{"temperature":24,"unit":"Celsius","condition":"showers","humidity":67}`,
		},
		{
			name: "weather, 市 and Chinese comma", tool: "get_weather", arguments: `{"city":"北京市，中国"}`,
			want: `{"temperature":22,"unit":"Celsius","condition":"多云","humidity":65}`,
		},
		{
			name: "weather, unknown city", tool: "get_weather", arguments: `{"city":"Atlantis"}`, failed: true,
			contains: []string{`"Atlantis"`, "Known cities: Beijing, ", "English or Chinese"},
		},
		{
			name: "weather, unknown Chinese city", tool: "get_weather", arguments: `{"city":"蓬莱仙岛"}`, failed: true,
			contains: []string{"蓬莱仙岛", "北京, 上海"},
		},
		{
			name: "weather, city missing", tool: "get_weather", arguments: `{}`, failed: true,
			contains: []string{"Invalid arguments for get_weather", "missing property 'city', expected string"},
		},
		{
			name: "weather, two things wrong", tool: "get_weather", arguments: `{"city":7,"day":"now"}`, failed: true,
			contains: []string{"city: expected string, got number", "unknown property 'day', known are city"},
		},
		{
			name: "weather, name in the wrong case", tool: "get_weather", arguments: `{"City":"Paris"}`, failed: true,
			contains: []string{"missing property 'city', expected string"},
		},
		{
			name: "restaurants of a cuisine", tool: "find_restaurant", arguments: `{"city":"Chengdu","cuisine":"italian food"}`,
			want: `{"city":"Chengdu","restaurants":[{"name":"Panda Slice","cuisine":"Italian","rating":4,"address":"3 Tech Park Road, Gaoxin","price":"$"}],"total":1}`,
		},
		{
			name: "restaurants, best first", tool: "find_restaurant", arguments: `{"city":"成都","cuisine":"四川菜"}`,
			want: `{"city":"成都","restaurants":[` +
				`{"name":"九大碗","cuisine":"川菜","rating":4.8,"address":"青羊区宽巷15号","price":"$$"},` +
				`{"name":"沸江火锅","cuisine":"川菜","rating":4.6,"address":"武侯区南环路77号","price":"$$"}],"total":2}`,
		},
		{
			name: "restaurants of any cuisine", tool: "find_restaurant", arguments: `{"city":"Beijing"}`,
			contains: []string{`"total":5`, "Red Gate Roast Duck"},
		},
		{
			name: "restaurants of a wider cuisine", tool: "find_restaurant", arguments: `{"city":"Beijing","cuisine":"Chinese"}`,
			contains: []string{`"total":3`},
		},
		{
			name: "restaurants, none of that cuisine", tool: "find_restaurant", arguments: `{"city":"Rome","cuisine":"粤菜"}`,
			want: `{"city":"Rome","restaurants":[],"total":0}`,
		},
		{
			name: "restaurants, unknown city", tool: "find_restaurant", arguments: `{"city":"Atlantis"}`,
			want: `{"city":"Atlantis","restaurants":[],"total":0}`,
		},
		{
			name: "restaurants, city missing", tool: "find_restaurant", arguments: `{"cuisine":"Thai"}`, failed: true,
			contains: []string{"missing property 'city', expected string"},
		},
		{name: "sum", tool: "calculate_sum", arguments: `{"a":2.1,"b":3.4}`, want: `{"sum":5.5}`},
		{name: "sum, to a whole number", tool: "calculate_sum", arguments: `{"a":0.5,"b":1.50}`, want: `{"sum":2}`},
		{name: "sum, nothing", tool: "calculate_sum", arguments: `{"a":-0.1,"b":1e-1}`, want: `{"sum":0}`},
		{
			name: "sum, beyond float64", tool: "calculate_sum", arguments: `{"a":9007199254740993,"b":1e-20}`,
			want: `{"sum":9007199254740993.00000000000000000001}`,
		},
		{
			name: "sum of text", tool: "calculate_sum", arguments: `{"a":"2","b":3}`, failed: true,
			contains: []string{"a: expected number, got string"},
		},
		{
			name: "sum, exponent out of range", tool: "calculate_sum", arguments: `{"a":1e999999999,"b":3}`, failed: true,
			contains: []string{"1e999999999", "out of range"},
		},
		{
			name: "sum, far too many digits", tool: "calculate_sum", arguments: `{"a":1,"b":` + strings.Repeat("9", 1001) + `}`, failed: true,
			contains: []string{"out of range at /b"},
		},
		{
			name: "sum, one number missing", tool: "calculate_sum", arguments: `{"a":1}`, failed: true,
			contains: []string{"missing property 'b'"},
		},
		{
			name: "one employee", tool: "query_employee_tree", arguments: `{"empId":"e003"}`,
			contains: []string{"E003", "VP Product", "in the tree: 1 ", "reports not listed: 2", "structuredContent"},
		},
		{
			name: "the whole company", tool: "query_employee_tree", arguments: `{"empId":"E001","includeSubordinates":true}`,
			contains: []string{"in the tree: 58 ", "58 个节点"}, absent: "left out",
		},
		{
			name: "the upper levels", tool: "query_employee_tree", arguments: `{"empId":"E001","includeSubordinates":true,"maxDepth":1}`,
			contains: []string{"in the tree: 6 ", "were left out: use a larger maxDepth"},
		},
		{
			name: "unknown employee", tool: "query_employee_tree", arguments: `{"empId":"E999"}`, failed: true,
			contains: []string{`"E999"`, "E001 (the CEO) to E058"},
		},
		{
			name: "employees, too deep", tool: "query_employee_tree", arguments: `{"empId":"E001","maxDepth":11}`, failed: true,
			contains: []string{"maxDepth: expected a number of at most 10, got 11"},
		},
		{
			name: "bundled CSV, everything", tool: "analyze_csv", arguments: `{"filepath":"employees.csv"}`,
			want: `{"file":"employees.csv","rows":58,"columns":[{"name":"salary","sum":1825750,"average":31478.448276,"count":58}],` +
				`"skipped":["id","name","title","department","manager"]}`,
		},
		{
			name: "CSV, one operation", tool: "analyze_csv", arguments: `{"filepath":"demo://files/sales.csv","operations":["sum"]}`,
			want: `{"file":"sales.csv","rows":48,"columns":[{"name":"units","sum":6651},{"name":"price","sum":2335.2},{"name":"revenue","sum":314082.9}],` +
				`"skipped":["month","region","product"]}`,
		},
		{
			name: "CSV with empty cells", tool: "analyze_csv", arguments: `{"filepath":"visitors.csv","operations":["count"]}`,
			want: `{"file":"visitors.csv","rows":42,"columns":[{"name":"visitors","count":42},{"name":"spend_per_head","count":40}],` +
				`"skipped":["date","city"]}`,
		},
		{
			name: "CSV of the scratch folder", tool: "analyze_csv", arguments: `{"filepath":"./reports/expenses.csv"}`,
			want: `{"file":"reports/expenses.csv","rows":3,"columns":[{"name":"amount","sum":64,"average":21.333333,"count":3}],"skipped":["date","item"]}`,
		},
		{
			name: "unknown CSV", tool: "analyze_csv", arguments: `{"filepath":"budget.csv"}`, failed: true,
			contains: []string{`"budget.csv"`, "employees.csv, sales.csv, visitors.csv, reports/expenses.csv."},
		},
		{
			name: "no CSV outside", tool: "analyze_csv", arguments: `{"filepath":"../../etc/passwd"}`, failed: true,
			contains: []string{"There is no file"},
		},
		{
			name: "no absolute CSV", tool: "analyze_csv", arguments: `{"filepath":"/etc/passwd"}`, failed: true,
			contains: []string{"There is no file"},
		},
		{
			name: "a folder is no CSV", tool: "analyze_csv", arguments: `{"filepath":"reports"}`, failed: true,
			contains: []string{"There is no file"},
		},
		{
			name: "unknown operation", tool: "analyze_csv", arguments: `{"filepath":"sales.csv","operations":["median"]}`, failed: true,
			contains: []string{"operations.0: expected one of 'sum', 'average', 'count'"},
		},
		{
			name: "no operation", tool: "analyze_csv", arguments: `{"filepath":"sales.csv","operations":[]}`, failed: true,
			contains: []string{"operations: expected at least 1 items"},
		},
		{
			name: "record", tool: "create_record", arguments: `{"table":"guests","data":{"z":1,"a":12345678901234567890}}`,
			want: `{"id":"guests-1","table":"guests","uri":"demo://records/guests/guests-1"}`,
		},
		{
			name: "the same record again", tool: "create_record", arguments: `{"table":"guests","data":{"z":1,"a":12345678901234567890}}`,
			want: `{"id":"guests-2","table":"guests","uri":"demo://records/guests/guests-2"}`,
		},
		{
			name: "record of another table", tool: "create_record", arguments: `{"table":"rooms","data":{}}`,
			want: `{"id":"rooms-1","table":"rooms","uri":"demo://records/rooms/rooms-1"}`,
		},
		{
			name: "record, odd table name", tool: "create_record", arguments: `{"table":"../x","data":{}}`, failed: true,
			contains: []string{"table: expected a string that matches", `got "../x"`},
		},
		{
			name: "record that is no object", tool: "create_record", arguments: `{"table":"guests","data":[1]}`, failed: true,
			contains: []string{"data: expected object, got array"},
		},
		{
			name: "record with a name twice", tool: "create_record", arguments: `{"table":"guests","data":{"a":1,"a":2}}`, failed: true,
			contains: []string{"duplicate"},
		},
		{
			name: "record too large", tool: "create_record", arguments: `{"table":"guests","data":{"a":"` + strings.Repeat("x", 64<<10) + `"}}`, failed: true,
			contains: []string{"at most 65536 are stored"},
		},
		{
			name: "record too deep", tool: "create_record", failed: true,
			arguments: `{"table":"guests","data":{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`,
			contains:  []string{"nested deeper than 64 levels"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, data, failed := call(t, s, tt.tool, tt.arguments)
			if failed != tt.failed {
				t.Fatalf("isError %v, want %v: %s", failed, tt.failed, text)
			}
			if tt.want != "" && text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
			for _, part := range tt.contains {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not in %s", part, text)
				}
			}
			if tt.absent != "" && strings.Contains(text, tt.absent) {
				t.Errorf("%q is in %s", tt.absent, text)
			}
			if failed {
				if data != "null" {
					t.Errorf("a failed call has structuredContent %s", data)
				}
				return
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if err := outputs[tt.tool].Validate(v); err != nil {
				t.Errorf("result breaks the announced schema: %v", err)
			}
		})
	}
}

// outputSchemas compiles what the server announces, as a client received it.
func outputSchemas(t *testing.T, s *sdk.ClientSession) map[string]*jsonschema.Schema {
	t.Helper()
	schemas := map[string]*jsonschema.Schema{}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("test:"+tool.Name, doc); err != nil {
			t.Fatal(err)
		}
		if schemas[tool.Name], err = c.Compile("test:" + tool.Name); err != nil {
			t.Fatal(err)
		}
	}
	return schemas
}

func TestDefinitions(t *testing.T) {
	d := newDemo(t)
	r, w := d.Pipe(t.Context())
	defer r.Close()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	ask := func(request string) string {
		t.Helper()
		if _, err := io.WriteString(w, request+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("no answer: %v", lines.Err())
		}
		return lines.Text()
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if _, err := io.WriteString(w, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	list := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)

	var answer struct {
		Result struct {
			Tools []struct {
				Name, Title, Description  string
				InputSchema, OutputSchema json.RawMessage
				Annotations               map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(list), &answer); err != nil {
		t.Fatal(err)
	}
	type effect struct{ readOnly, destructive, idempotent, openWorld bool }
	got := map[string]effect{}
	for _, tool := range answer.Result.Tools {
		hint := func(name string) bool {
			v, ok := tool.Annotations[name].(bool)
			if !ok {
				t.Errorf("%s: hint %s is not stated", tool.Name, name)
			}
			return v
		}
		got[tool.Name] = effect{hint("readOnlyHint"), hint("destructiveHint"), hint("idempotentHint"), hint("openWorldHint")}
		if tool.Title == "" || tool.Description == "" || strings.ContainsAny(tool.Description, "\n\t") {
			t.Errorf("%s: title %q, description %q", tool.Name, tool.Title, tool.Description)
		}
		for _, schema := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
			if _, refusal := schemas.Admit(schema); refusal != nil {
				t.Errorf("%s: %v", tool.Name, refusal)
			}
		}
	}
	want := map[string]effect{
		"get_weather":         {readOnly: true, idempotent: true},
		"find_restaurant":     {readOnly: true, idempotent: true},
		"query_employee_tree": {readOnly: true, idempotent: true},
		"calculate_sum":       {readOnly: true, idempotent: true},
		"analyze_csv":         {readOnly: true, idempotent: true},
		"create_record":       {},
		"delete_file":         {destructive: true, idempotent: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(effect{})); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	// The order of properties is the order they were written in.
	if order := `"temperature":{"type":"number","description":"Air temperature (气温)"},"unit":{`; !strings.Contains(list, order) {
		t.Errorf("schemas lost their order or their text: %s", list)
	}
}

func TestDescriptionsMeetTheQuestion(t *testing.T) {
	for question, tool := range map[string]toolkit.Tool{
		"天气": weatherTool, "Weather": weatherTool, "餐厅": restaurantTool, "员工": employeeTool,
		"相加": sumTool, "CSV": csvTool, "新建": recordTool, "删除": deleteTool,
	} {
		if !strings.Contains(tool.Title+tool.Description, question) {
			t.Errorf("%s does not mention %s", tool.Name, question)
		}
	}
}

func TestTreeLimits(t *testing.T) {
	var rows [][]string
	hire := func(id, boss string) { rows = append(rows, []string{id, "N", "T", "D", boss}) }
	hire("top", "")
	for i := range maxReports + 5 {
		mid := fmt.Sprint("m", i)
		hire(mid, "top")
		for j := range maxReports + 5 {
			low := fmt.Sprint(mid, "-", j)
			hire(low, mid)
			hire(low+"-0", low)
		}
	}
	hire("ouroboros", "ouroboros")
	c := newCompany(rows)

	for _, tt := range []struct {
		name, boss string
		levels     int
		want       int
	}{
		{"breadth", "top", 1, 1 + maxReports},
		{"breadth of each", "top", 2, 1 + maxReports + maxReports*maxReports},
		{"all in all", "top", 3, maxEmployees},
		{"own boss", "ouroboros", maxLevels, 1 + maxLevels},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := employeeTree{Total: 1, Tree: []employee{c.people[tt.boss]}}
			c.grow(&tree.Tree[0], tt.levels, &tree)
			if tree.Total != tt.want || !tree.Truncated {
				t.Errorf("%d employees, truncated %v; want %d, true", tree.Total, tree.Truncated, tt.want)
			}
			if n := headcount(tree.Tree); n != tree.Total {
				t.Errorf("total says %d, the tree holds %d", tree.Total, n)
			}
		})
	}
}

func headcount(list []employee) int {
	n := len(list)
	for _, e := range list {
		n += headcount(e.Subordinates)
	}
	return n
}

func TestRecordsAreBounded(t *testing.T) {
	var s records
	for range maxRecords {
		if _, err := s.create(t.Context(), newRecord{"t", fields(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.create(t.Context(), newRecord{"t", fields(`{}`)}); !errorIsRefusal(err) {
		t.Errorf("record %d: %v, want a refusal", maxRecords+1, err)
	}
}

func errorIsRefusal(err error) bool {
	_, ok := errors.AsType[*toolkit.Refusal](err)
	return ok
}
