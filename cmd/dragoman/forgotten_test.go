package main

import "testing"

// Issue 17, D3: words that may be the command of a server are no message, and with --yes
// the message is one argument. chat.txtar has what people see.
func TestForgottenDashes(t *testing.T) {
	tests := []struct {
		words []string
		yes   bool
		fine  bool
	}{
		{nil, true, true},
		{[]string{"node"}, true, true},
		{[]string{"what does npx do"}, true, true},
		{[]string{"what", "is", "new"}, false, true},
		{[]string{"what", "is", "new"}, true, false},
		{[]string{"hello", "-"}, false, true},
		{[]string{"hello", "npx", "foo"}, false, false},
		{[]string{"npx", "foo"}, false, false},
		{[]string{"hello", "NPX.CMD", "foo"}, false, false},
		{[]string{"hello", "/usr/bin/python3", "a.py"}, false, false},
		{[]string{"hello", `C:\nodejs\node.exe`, "a.js"}, false, false},
		{[]string{"Nodes", "and", "pythons"}, false, true},
	}
	for _, tt := range tests {
		if err := checkMessage(tt.words, tt.yes); (err == nil) != tt.fine {
			t.Errorf("%q, yes %v: %v", tt.words, tt.yes, err)
		}
	}
}
