package toolkit

import (
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// A grant, and a key with it, mean the same to a server and to the gateway.
func TestGrantsMeanTheSame(t *testing.T) {
	rights := []string{"tickets:read", "tickets:write", "tool:a__x", "tool:a__y", "model:gpt-5", "approve:a__x", "tickets", "*", "TICKETS:READ"}
	for _, grant := range []string{"*", "tickets:*", "tickets:read", "tickets:?ead", "tool:a__*", "model:*", "approve:*", "t*:*", "tickets:re", "tickets:read "} {
		text, record, err := apikey.NewRecord("ada", []string{grant}, 0)
		if err != nil {
			if _, _, theirs := NewAPIKey("ada", grant); theirs == nil {
				t.Errorf("%q can be granted here, and not at the gateway: %v", grant, err)
			}
			continue
		}
		path := filepath.Join(t.TempDir(), "keys.jsonl")
		if err := apikey.Add(path, record); err != nil {
			t.Fatal(err)
		}
		keys, err := OpenKeys(path)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := apikey.ID(text)
		k, err := keys.APIKey(t.Context(), id)
		if err != nil {
			t.Fatalf("a key of the gateway's: %v", err)
		}
		ours, theirs := Caller{User: k.User, Rights: k.Rights}, caller.Caller{ID: "key-" + id, Grants: record.Rights}
		for _, right := range rights {
			if ours.May(right) != theirs.May(right) {
				t.Errorf("%q gives %q here: %t, at the gateway: %t", grant, right, ours.May(right), theirs.May(right))
			}
		}
	}
	for _, scope := range rights {
		ours, theirs := Caller{User: "ada", Rights: []string{scope}, Token: &auth.TokenInfo{}}, caller.Caller{ID: "x#ada", Scopes: []string{scope}}
		for _, right := range rights {
			if ours.May(right) != theirs.May(right) {
				t.Errorf("the scope %q gives %q here: %t, at the gateway: %t", scope, right, ours.May(right), theirs.May(right))
			}
		}
	}
}
