package rehearsal

import (
	"slices"
	"strings"
	"testing"
)

// toolOf makes a tool from "name | description | schema".
func toolOf(t testing.TB, line string) tool {
	t.Helper()
	parts := strings.SplitN(line, "|", 3)
	schema, err := parse([]byte(parts[2]))
	if err != nil {
		t.Fatalf("schema of %s: %v", parts[0], err)
	}
	return tool{strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), schema, false}
}

func office(t testing.TB) []tool {
	var list []tool
	for _, line := range []string{
		`get_weather | Current weather (当前天气) in one city. Answers "Is it cold in Oslo today?" or "上海今天天气怎么样?". | {"type":"object","properties":{"city":{"type":"string","description":"Name of the city, e.g. Lisbon or 广州"},"units":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["city"]}`,
		`find_restaurant | Looks for places to eat in a city | {"type":"object","properties":{"city":{"type":"string","description":"Where to look"},"cuisine":{"type":"string","description":"Kind of kitchen (e.g. Italian, Thai)"}},"required":["city"]}`,
		`query_employee_tree | Employees and who works for them | {"type":"object","properties":{"empId":{"type":"string","description":"Id such as E100"},"includeSubordinates":{"type":"boolean"},"depth":{"type":"integer"}},"required":["empId"]}`,
		`calculate_sum | Adds two numbers | {"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`,
		`sum_all | Adds a list of numbers | {"type":"object","properties":{"numbers":{"type":"array","items":{"type":"number"}}},"required":["numbers"]}`,
		`analyze_csv | Statistics of a table in a file | {"type":"object","properties":{"filepath":{"type":"string"},"operations":{"type":"array","items":{"enum":["sum","average","count"]}}},"required":["filepath"]}`,
		`create_record | Stores a record | {"type":"object","properties":{"table":{"type":"string"},"data":{"type":"object"}},"required":["table","data"]}`,
		`move_file | Moves a file | {"type":"object","properties":{"source":{"type":"string"},"destination":{"type":"string"}},"required":["source","destination"]}`,
		`write_file | Writes text to a file | {"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`,
		`open_nodes | Opens nodes of a graph | {"type":"object","properties":{"names":{"type":"array","items":{"type":"string"}}},"required":["names"]}`,
		`cancel_orders | Cancels orders | {"type":"object","properties":{"orderIds":{"type":"array","items":{"type":"string"}}},"required":["orderIds"]}`,
		`forget_ids | Forgets what has these ids | {"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"}}},"required":["ids"]}`,
		`echo | Sends the message back | {"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`,
		`send_mail | Sends mail | {"type":"object","properties":{"to":{"type":"string","format":"email"},"urgent":{"type":"boolean","default":false},"day":{"anyOf":[{"type":"null"},{"type":"string","format":"date"}]}},"required":["to","urgent","day"]}`,
		`set_level | Chooses how much is logged | {"type":"object","properties":{"level":{"$ref":"#/$defs/level"}},"required":["level"],"$defs":{"level":{"enum":["debug","warning"]}}}`,
	} {
		list = append(list, toolOf(t, line))
	}
	return list
}

func TestChoose(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"What is the weather in Beijing?", `get_weather {"city":"Beijing"}`},
		{"北京今天天气怎么样?", `get_weather {"city":"北京"}`},
		{"和田的天气", `get_weather {"city":"和田"}`},
		{"查询一下广州的天气", `get_weather {"city":"广州"}`},
		{"Beijing weather", `get_weather {"city":"Beijing"}`},
		{"weather in new york please", `get_weather {"city":"new york"}`},
		{"Weather for New York City, now!", `get_weather {"city":"New York City"}`},
		{"How cold is it in Oslo, in fahrenheit?", `get_weather {"city":"Oslo","units":"fahrenheit"}`},
		{"weather, city: Rio de Janeiro", `get_weather {"city":"Rio"}`},
		{`weather, city="Rio de Janeiro"`, `get_weather {"city":"Rio de Janeiro"}`},
		{"find a restaurant in Shanghai", `find_restaurant {"city":"Shanghai"}`},
		{"Cancel the orders ord_17, ord_18 and X-9.", `cancel_orders {"orderIds":["ord_17","ord_18","X-9"]}`},
		{"Forget 4711 and 4712", `forget_ids {"ids":["4711","4712"]}`},
		{`Forget "rec a" and "rec b"`, `forget_ids {"ids":["rec a","rec b"]}`},
		{"Who works for employee E007?", `query_employee_tree {"empId":"E007"}`},
		{"calculate the sum of 2 and 3.5", `calculate_sum {"a":2,"b":3.5}`},
		{"calculate the sum of -2 and 9007199254740993", `calculate_sum {"a":-2,"b":9007199254740993}`},
		{"move /tmp/a to /tmp/b", `move_file {"source":"/tmp/a","destination":"/tmp/b"}`},
		{"Write 'good morning' to the file notes/today.txt.", `write_file {"path":"notes/today.txt","content":"good morning"}`},
		{"open the nodes Alice and Bob Smith", `open_nodes {"names":["Alice","Bob Smith"]}`},
		{`open nodes ["x","y"]`, `open_nodes {"names":["x","y"]}`},
		{"echo hello to the world", `echo {"message":"hello to the world"}`},
		{"send mail to ann@example.com on 2026-01-31", `send_mail {"to":"ann@example.com","urgent":false,"day":"2026-01-31"}`},
		{"choose the level Debug", `set_level {"level":"debug"}`},
		{"Analyze the file sales.csv", `analyze_csv {"filepath":"sales.csv"}`},
		{`Create a record, table: users, data: {"id": 1e2, "ok": true}`, `create_record {"table":"users","data":{"id": 1e2, "ok": true}}`},
		{"Compare the weather in Oslo, New York and Rome in celsius.", `get_weather {"city":"Oslo","units":"celsius"}`},
		{"weather in Oslo and good advice", `get_weather {"city":"Oslo"}`},
		{"What's the weather like?", "To use get_weather I still need: city (Name of the city, e.g. Lisbon or 广州)."},
		{"天气怎么样", "要使用 get_weather，还需要：city (Name of the city, e.g. Lisbon or 广州)。"},
		{"choose the level", `To use set_level I still need: level.`},
		{"Tell me a joke", ""},
		{"你好", ""},
		{"", ""},
	} {
		t.Run(tt.text, func(t *testing.T) {
			r := &request{tools: office(t), choice: "auto", parallel: true}
			calls, got := r.choose(tt.text, false)
			for _, c := range calls {
				got = strings.TrimPrefix(got+"\n"+c.name+" "+c.arguments, "\n")
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestChooseForced makes up what the message does not say.
func TestChooseForced(t *testing.T) {
	strange := toolOf(t, `strange | | {"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/n"},"minItems":2},"s":{"type":"string","minLength":3},"o":{"type":"object","properties":{"x":{"const":null},"y":{"type":"boolean"}},"required":["x","y"]}},"required":["a","s","o"],"$defs":{"n":{"type":"integer","minimum":4}}}`)
	r := &request{tools: []tool{strange}, choice: "required"}
	calls, question := r.choose("", true)
	if question != "" {
		t.Fatal(question)
	}
	if want := `{"a":[4,4],"s":"---","o":{"x":null,"y":false}}`; calls[0].arguments != want {
		t.Errorf("got  %s\nwant %s", calls[0].arguments, want)
	}
}

// TestMinimalEnds gives schemas that ask for without end.
func TestMinimalEnds(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"child":{"$ref":"#"}},"required":["child"]}`,
		`{"type":"array","minItems":1000000000,"items":{"type":"array","minItems":1000000000,"items":{"type":"string","minLength":1000000000}}}`,
		`{"$ref":"#"}`,
		`{"anyOf":[{"$ref":"#/anyOf/0"}]}`,
		`{"$ref":"https://example.com/elsewhere"}`,
	} {
		v, err := parse([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		got := minimal(v, v)
		if _, err := parse([]byte(got)); err != nil || len(got) > 2_000_000 {
			t.Errorf("%s: %d bytes, %v", schema, len(got), err)
		}
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"What are the directories in use?", "directorie"},
		{"my boxes, my glass", "boxe glass"},
		{"queryEmployeeTree", "query employee tree"},
		{"get-tiny_image.v2", "tiny image v2"},
		{"北京天气", "北京 京天 天气"},
		{"Größe 名", "größe"},
	} {
		var got []string
		for _, term := range nameTerms(tt.text) {
			got = append(got, term.text)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %s, want %s", tt.text, strings.Join(got, " "), tt.want)
		}
	}
}

// FuzzChoose reads any message: the arguments are always a JSON object whose
// members the schema declares, and always the same.
func FuzzChoose(f *testing.F) {
	for _, seed := range []string{
		`weather "in' Rome, city=, 'x' “北京”の天気`, "move ./a b\\c to https://x.y/z?q=[1,{}]", "sum -1.5e3 + 2.. 3-4 E5",
		`record {"a":{"b":[}} table: users, data={"x":1} name=“y`, "employee  no depth 3 without subordinates \xff\xfe",
		`ma s\\CCCCCCc to httpb tZ/z?xE[1,{}]`, "weather 北京@x、y和 z/北, Oslo and Rome-Ostia and x@y",
	} {
		for which := range 13 {
			f.Add(seed, which)
		}
	}
	tools := office(f)
	f.Fuzz(func(t *testing.T, text string, which int) {
		one := tools[uint(which)%uint(len(tools))]
		for _, forced := range []bool{false, true} {
			r := &request{tools: []tool{one}, choice: "auto", parallel: true}
			calls, question := r.choose(text, forced)
			if again, _ := r.choose(text, forced); !slices.Equal(again, calls) {
				t.Fatalf("%+v, then %+v", calls, again)
			}
			if calls == nil && forced {
				t.Fatalf("%s was not called: %s", one.name, question)
			}
			for _, c := range calls {
				checkDeclared(t, one, c.arguments)
			}
		}
	})
}

func checkDeclared(t *testing.T, to tool, arguments string) {
	t.Helper()
	v, err := parse([]byte(arguments))
	if err != nil || v.kind != isObject {
		t.Fatalf("%s: %v", arguments, err)
	}
	for _, m := range v.members {
		if to.parameters.get("properties").get(m.name).kind == absent {
			t.Fatalf("%s: %s is not declared", arguments, m.name)
		}
	}
}

// TestChooseLong reads messages whose cost could grow with the square of
// their length.
func TestChooseLong(t *testing.T) {
	for _, piece := range []string{"[", "{\"a\":", "'x ", "weather ", "北京", "a/b ", "1 ", "x=", "“"} {
		r := &request{tools: office(t), choice: "required"}
		if picked, question := r.choose(strings.Repeat(piece, 1<<20/len(piece)), true); picked == nil {
			t.Errorf("%q: %s", piece, question)
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	var tools []tool
	for range 8 {
		tools = append(tools, office(b)...)
	}
	r := &request{tools: tools, choice: "auto"}
	for b.Loop() {
		if picked, _ := r.choose("What is the weather in Beijing today?", false); picked == nil {
			b.Fatal("nothing chosen")
		}
	}
}
