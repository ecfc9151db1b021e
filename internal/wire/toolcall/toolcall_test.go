package toolcall

import "testing"

func TestApart(t *testing.T) {
	for _, test := range []struct{ message, rest, arguments string }{
		{`{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"\ud83d"}}}`, `{"id":1,"method":"tools/call","params":{"name":"a"}}`, `{"x":"\ud83d"}`},
		{`{"method":"tools/call","params":{"arguments":{"x":1,"x":2},"name":"a"},"id":"1"}`, `{"method":"tools/call","params":{"name":"a"},"id":"1"}`, `{"x":1,"x":2}`},
		{"{\"method\":\"tools/call\",\"params\":{\"arguments\":[\"\xff\"]}}", `{"method":"tools/call","params":{}}`, "[\"\xff\"]"},

		// Nothing is wrong, or something else, or more.
		{message: `{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"😀"}}}`},
		{message: `{"id":1,"method":"tools/call","params":{"name":"a"}}`},
		{message: `{"id":1,"method":"tools/call","params":{"name":"\ud83d","arguments":{}}}`},
		{message: `{"id":1,"method":"tools/call","params":{"name":"\ud83d","arguments":{"x":"\ud83d"}}}`},
		{message: `{"id":1,"method":"tools/call","method":"ping","params":{"arguments":{"x":1,"x":2}}}`},
		{message: `{"id":1,"method":"ping","method":"tools/call","params":{"arguments":{"x":1,"x":2}}}`},
		{message: `{"id":1,"method":"tools/call","params":{"name":"a","arguments":{},"arguments":{"x":1,"x":2}}}`},
		{message: `{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"x":2},"arguments":{}}}`},
		{message: `{"id":1,"method":"tools/call","params":{},"params":{"arguments":{"x":1,"x":2}}}`},
		{message: `{"id":1,"method":"prompts/get","params":{"name":"a","arguments":{"x":"\ud83d"}}}`},
		{message: `{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1 2}}}`},
		{message: `{"id":1,"method":"tools/call","params":[{"x":1,"x":2}]}`},
		{message: `[{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"x":2}}}]`},
		{message: ``},
	} {
		rest, arguments, ok := Apart([]byte(test.message))
		if ok != (test.rest != "") || ok && (string(rest) != test.rest || string(arguments) != test.arguments) {
			t.Errorf("%s:\ngot  %t %s %s\nwant %s %s", test.message, ok, rest, arguments, test.rest, test.arguments)
		}
	}
}
