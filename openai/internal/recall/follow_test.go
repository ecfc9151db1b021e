package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// TestFollow: a client breaks off while a call runs and goes on at once, before the call has
// ended. What became of it is known first; where the client stays, its other request is answered
// beside it, at once where the first has called nothing, and so is one of another conversation, or
// one that is the first in its own.
func TestFollow(t *testing.T) {
	const (
		task  = `{"role":"user","content":"Save it."}`
		said  = `{"role":"assistant","content":"Good morning."}`
		more  = `{"role":"user","content":"And be brief."}`
		did   = `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"save","arguments":"{}"}}]}`
		ended = `{"role":"tool","tool_call_id":"1","content":"It may have been saved."}`
	)
	for _, tt := range []struct {
		name         string
		before, next []string
		owner        string
		leaves       bool
		waits, knows bool
		talks        bool // the first has called nothing yet
	}{
		{"goes on", []string{task}, []string{task, more}, "alice", true, true, true, false},
		{"goes on in a conversation of which nothing was kept", []string{more, said, task}, []string{more, said, task, more}, "alice", true, true, true, false},
		{"asks beside", []string{task}, []string{task, more}, "alice", false, false, false, false},
		{"somebody else", []string{task}, []string{task, more}, "bob", true, false, false, false},
		{"asks beside one that talks", []string{task}, []string{task, more}, "alice", false, false, false, true},
		{"another question", []string{task}, []string{more, more}, "alice", true, false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept, running := &memory.Memory{}, &memory.Running{}
				thread := func(owner string, messages []string) *Thread {
					thread := &Thread{
						Request: Request{Owner: owner, Identified: true, Digest: strings.Join(messages, "")}, Memory: kept, Running: running,
						Dialogue: &model.Dialogue{Client: &model.Client{}, Request: model.Request{Object: &rawjson.Object{}}},
					}
					for _, m := range messages {
						thread.Request.Messages = append(thread.Request.Messages, json.RawMessage(m))
					}
					return thread
				}
				ctx, leave := context.WithCancel(t.Context())
				first := thread("alice", tt.before)
				if err := first.Restore(ctx); err != nil {
					t.Fatal(err)
				}
				if !tt.talks {
					if err := first.KeepBegun(ctx, &model.Round{}, ""); err != nil {
						t.Fatal(err)
					}
				}
				next, restored := thread(tt.owner, tt.next), false
				begin := time.Now()
				go func() {
					if err := next.Restore(t.Context()); err != nil {
						t.Error(err)
					}
					restored = true
				}()
				if tt.leaves {
					leave()
				}
				synctest.Wait()
				if (tt.leaves || tt.talks) && restored == tt.waits {
					t.Errorf("waits: %t", !restored)
				}
				<-time.After(3 * time.Second) // the server of the call takes its time
				if synctest.Wait(); !tt.leaves && (!restored || time.Since(begin) > 4*time.Second) {
					t.Error("it is not answered beside one whose client stays")
				}
				first.Dialogue.AddHidden(json.RawMessage(did), json.RawMessage(ended))
				leave()
				first.Remember(End{Err: context.Canceled})
				synctest.Wait()
				if sent := fmt.Sprintf("%s", next.Dialogue.History()); !restored || strings.Contains(sent, "It may have been saved.") != tt.knows {
					t.Errorf("restored: %t, the model is told %s", restored, sent)
				}
				next.Remember(End{Err: context.Canceled})
			})
		})
	}
}
