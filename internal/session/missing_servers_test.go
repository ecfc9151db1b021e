package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
)

// listed is a toolset that lists, and runs nothing.
type listed struct{ list *dragoman.List }

func (l *listed) List(context.Context) (*dragoman.List, error) { return l.list, nil }
func (l *listed) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	return dragoman.Result{}, errors.New("nothing runs here")
}

// A request hears of servers that are not there; one that names them is refused.
func TestMissingServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		tools := &listed{&dragoman.List{
			Tools: dragoman.NewTools([]dragoman.Tool{
				{Server: "up", Original: "read_file", Name: "up__read_file"},
				{Server: "back_soon", Original: "x", Name: "back_soon__x"},
			}),
			Servers: []dragoman.Server{
				{Label: "back_soon", State: dragoman.Failed, Since: now},
				{Label: "down", State: dragoman.Failed, Since: now.Add(-time.Minute), Retry: now.Add(30 * time.Second)},
				{Label: "slow", State: dragoman.Starting, Since: now},
				{Label: "up", State: dragoman.Connected, Since: now},
			},
		}}
		var waited time.Duration
		opener := New(Options{
			Tools: Shared(tools), Servers: map[string]bool{"up": true, "down": true, "slow": true, "back_soon": true}, Dialects: dialect.Builtin(),
			Wait: 3 * time.Second,
			Settle: func(ctx context.Context, _ servers.Owner, labels []string) {
				start := time.Now()
				if len(labels) == 0 || labels[0] == "slow" {
					<-ctx.Done()
				}
				waited = time.Since(start)
			},
		})
		open := func(choices ...catalog.Choice) (*Session, error) {
			return opener.Open(t.Context(), caller.Local, Want{Servers: choices})
		}
		s, err := open()
		if err != nil || len(s.Missing) != 2 || s.Missing[0].Label != "down" || s.Missing[1].Label != "slow" || waited != 3*time.Second {
			t.Errorf("all: %v, missing %+v after %s", err, s.Missing, waited)
		}
		waited = -1
		if s, err := open(); err != nil || len(s.Missing) != 2 || waited != -1 {
			t.Errorf("all have had their time, and the next request waited %s: %v", waited, err)
		}
		for _, tt := range []struct {
			name   string
			choice catalog.Choice
			want   error
			text   string
		}{
			{"one that is there", catalog.Choice{Server: "up"}, nil, ""},
			{"one that comes back", catalog.Choice{Server: "back_soon"}, nil, ""},
			{"one that is down", catalog.Choice{Server: "down"}, ErrServerUnavailable, "failed for 1m"},
			{"one that is slow", catalog.Choice{Server: "slow"}, ErrServerUnavailable, "starting"},
			{"one that nobody has", catalog.Choice{Server: "nobody"}, ErrUnknownServer, ""},
			{"a tool", catalog.Choice{Server: "up", Tools: []string{"read_file"}}, nil, ""},
			{"a misspelt tool", catalog.Choice{Server: "up", Tools: []string{"read_fiel"}}, ErrUnknownTool, `did you mean "read_file"?`},
			{"a tool by its public name", catalog.Choice{Server: "up", Tools: []string{"up__read_file"}}, ErrUnknownTool, `did you mean "read_file"?`},
			{"a tool that nobody has", catalog.Choice{Server: "up", Tools: []string{"zzz"}}, ErrUnknownTool, `no tool "zzz"`},
		} {
			s, err := open(tt.choice)
			if !errors.Is(err, tt.want) || err == nil && len(s.Missing) > 0 || err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		waited = -1
		if _, err := opener.Open(t.Context(), caller.Local, Want{NoTools: true}); err != nil || waited != -1 {
			t.Errorf("a request without tools waited: %v", err)
		}
	})
}
