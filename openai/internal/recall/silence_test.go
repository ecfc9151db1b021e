package recall

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// TestSilence: an answer in which nothing was said has its client go on in the same message, with
// reminders, however much later. What was done stands in front of them, once, then and later.
func TestSilence(t *testing.T) {
	const nudge = Reminder + "Nothing was visible." + ReminderEnd
	const hook = Reminder + "The tests fail." + ReminderEnd
	silent := &model.Reply{Message: object(t, `{"role":"assistant","content":""}`)}
	type request struct {
		taking
		silent bool // the answer is whole, and says nothing
	}
	ask := func(digest string, says []string, calls, answer, want string) request {
		return request{taking{"session ", digest, says, calls, answer, want}, false}
	}
	mute := func(digest string, says []string, calls, want string) request {
		return request{taking{"session ", digest, says, calls, "", want}, true}
	}
	for name, requests := range map[string][]request{
		"is told of": {
			mute("p1", []string{"Save it."}, "write", ""),
			ask("p1", []string{"Save it.+" + nudge}, "", "Yes.", "Save it.|write|"+nudge),
			ask("p2", []string{"Save it.+" + nudge, "Yes.", "Bye."}, "", "Bye.", "Save it.+"+nudge+"|write|Yes.|Bye."),
		},
		"goes on": {
			mute("p1", []string{"Save it."}, "write", ""),
			mute("p1", []string{"Save it.+" + nudge}, "write2", "Save it.|write|"+nudge),
			ask("p1", []string{"Save it.+" + nudge + "+" + hook}, "write3", "Yes.", "Save it.|write|write2|"+nudge+"+"+hook),
			ask("p2", []string{"Save it.+" + nudge + "+" + hook, "Yes.", "Bye."}, "", "Bye.", "Save it.+"+nudge+"+"+hook+"|write|write2|write3|Yes.|Bye."),
		},
		"a process that dies behind it": {
			mute("p1", []string{"Save it."}, "write", ""),
			ask("p1", []string{"Save it.+" + nudge}, "dies", "", "Save it.|write|"+nudge),
			ask("p1", []string{"Save it.+" + nudge}, "", "Yes.", "Save it.+"+nudge+"|write|may or may not"),
		},
		"is taken back": {
			mute("p1", []string{"Save it."}, "write", ""),
			ask("p1", []string{"Save it.+" + nudge}, "write2", "", "Save it.|write|"+nudge),
			ask("p2", []string{"Now."}, "", "Yes.", "Save it.|write|write2|Now."),
		},
		"an answer that was lost": {
			ask("p1", []string{"Save it."}, "write", "Yes.", ""),
			ask("p1", []string{"Save it.+" + nudge}, "", "Yes.", "Save it.+"+nudge+"|write"),
		},
		"another prompt": {
			mute("p1", []string{"Save it."}, "write", ""),
			ask("p2", []string{"Save it.+And?"}, "", "Yes.", "Save it.|write|And?"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept := &memory.Memory{}
				for n, r := range requests {
					thread := r.thread(kept, &memory.Running{})
					thread.Request.Turn = true
					if err := thread.Restore(t.Context()); err != nil {
						t.Fatal(err)
					}
					if got := told(thread); r.want != "" && got != r.want {
						t.Errorf("of request %d the model is told %q, want %q", n, got, r.want)
					}
					if r.silent {
						r.does(t, thread)
						thread.Remember(End{Last: silent})
					} else {
						r.end(t, thread)
					}
					time.Sleep(2 * retryWindow)
				}
			})
		})
	}
}
