package e2e

import (
	"strings"
	"testing"
)

// The judge of the soak sees what it is there to see.
func TestSoakLedger(t *testing.T) {
	const told = `{"user":"k0w00c000001whole","messages":[{"role":"tool","content":"{\"status\":\"success\",\"data\":{\"nonce\":\"k0w00c000001whole.0\"},\"meta\":{\"tool\":\"write\"}}"}]}`
	drew := func(user string) string {
		return `{"user":"` + user + `","messages":[{"role":"tool","content":"{\"status\":\"success\",\"data\":{\"executions\":7}}"}]}`
	}
	for _, test := range []struct {
		name string
		do   func(*ledger)
		want string // how the fault begins; empty: there is none
	}{
		{"once and told", func(l *ledger) { l.ran("a", "k0w00c000001whole.0"); l.received([]byte(told)) }, ""},
		{"told and never run", func(l *ledger) { l.received([]byte(told)) }, "NEVER"},
		{"twice at one server", func(l *ledger) { l.ran("a", "k0w00c000001whole.0"); l.ran("a", "k0w00c000001whole.0") }, "TWICE"},
		{"once at each of two", func(l *ledger) { l.ran("a", "k0w00c000001whole.0"); l.ran("b", "k0w00c000001whole.0") }, "TWICE"},
		{"a nonce of another", func(l *ledger) {
			l.received([]byte(`{"user":"k0w00c000001whole","messages":[{"role":"user","content":"k0w00c000002whole.0"}]}`))
		}, "MIXED"},
		{"drawn by one, shown to the same", func(l *ledger) {
			l.received([]byte(drew("k0w00c000001whole")))
			l.received([]byte(drew("k0w00c000001whole")))
		}, ""},
		{"drawn by one, shown to another", func(l *ledger) {
			l.received([]byte(drew("k0w00c000001whole")))
			l.received([]byte(drew("k0w00c000002whole")))
		}, "MIXED"},
	} {
		l := newLedger()
		test.do(l)
		got := strings.Join(l.faults(), "\n")
		if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: found %q, want %q", test.name, got, test.want)
		}
	}
	if got := nonceOfWrite(`{"id":1,"method":"tools/call","params":{"name":"write","arguments":{"nonce":"k1w02c000003whole.4"}}}`); got != "k1w02c000003whole.4" {
		t.Errorf("the nonce of a write is %q", got)
	}
	if got := foreign("k1w02c000003whole.4 and k1w02c000003whole.5", "k1w02c000003whole"); got != "" {
		t.Errorf("%q is called foreign", got)
	}
}
