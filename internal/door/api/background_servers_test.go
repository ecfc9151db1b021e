package api

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// setDown says which servers have nothing to offer, and the state that they are in.
func (s *toolset) setDown(state dragoman.ServerState, labels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = nil
	for _, label := range labels {
		s.down = append(s.down, dragoman.Server{Label: label, State: state})
	}
}

// dieWithCall lets a process make a response until it is at a call, which is told, and takes
// it over. The call ends with the test.
func dieWithCall(t *testing.T, here, there *process, tools string) (id string) {
	t.Helper()
	id = callTold(t, here, tools)
	there.takeFrom(here, id)
	return id
}

// callTold lets a process make a response until it is at a call, which is told. The call ends
// with the test.
func callTold(t *testing.T, here *process, tools string) (id string) {
	t.Helper()
	begun, dead := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(dead) })
	here.tools.run = func(ctx context.Context, _ dragoman.Call) (dragoman.Result, error) {
		close(begun)
		<-dead
		return dragoman.Result{}, ctx.Err()
	}
	id = here.post(askWeather + tools + "}")
	<-begun
	for e, err := range here.runs.Follow(t.Context(), "somebody", id, -1) {
		if err != nil {
			t.Fatal(err)
		}
		if kind, _ := rawjson.String(rawjson.Find(e.Data, "type")); kind == "response.mcp_call_arguments.done" {
			break
		}
	}
	return id
}

// Where the tools of a response have changed when it is taken up, it fails, and says so: no
// model is to blame.
func TestBackgroundToolsChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := start(t, path), start(t, path)
	there.tools.setDown(dragoman.Connected, "weather")
	id := dieWithCall(t, here, there, "")
	there.events(id, -1)
	if status, body := there.got(id); status != "failed" || !strings.Contains(body, "have changed since") {
		t.Errorf("%s", body)
	}
}

// A call that had begun is in a response that fails, or is cancelled, before it is known what
// the call came to: it may have changed something.
func TestBackgroundNamesCallsThatHadBegun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := start(t, path), start(t, path)
	there.tools.setDown(dragoman.Connected, "weather")
	failed := dieWithCall(t, here, there, "")
	there.events(failed, -1)
	here = start(t, path)
	cancelled := callTold(t, here, "")
	there.do("POST", "/v1/responses/"+cancelled+"/cancel", "")
	for want, id := range map[string]string{"failed": failed, "cancelled": cancelled} {
		status, body := there.got(id)
		var output []struct{ Type, Status, Name, Arguments string }
		if err := json.Unmarshal(rawjson.Find([]byte(body), "output"), &output); err != nil {
			t.Fatal(err)
		}
		if status != want || len(output) != 1 || output[0].Status != "incomplete" || output[0].Arguments != `{"city":"Oslo"}` || !strings.Contains(body, "It may or may not have taken effect") {
			t.Errorf("%s, of %s: %s", want, status, body)
		}
	}
}

// A response that is taken up where a server of its calls is not there, as after a restart,
// waits for it. Others are none of its business.
func TestBackgroundWaitsForServers(t *testing.T) {
	for _, tools := range []string{"", `,"tools":[{"type":"mcp","server_label":"weather","require_approval":"never"}]`} {
		path := filepath.Join(t.TempDir(), "dragoman.db")
		waits := make(chan struct{}, 1)
		here, there := start(t, path), started(t, path, run.Config{At: func(point string) {
			if point == "after "+run.ErrWaits.Error() {
				waits <- struct{}{}
			}
		}})
		there.tools.setDown(dragoman.Failed, "maps", "weather")
		id := dieWithCall(t, here, there, tools)
		<-waits
		if status, body := there.got(id); status != "in_progress" {
			t.Errorf("it is %s", body)
		}
		there.tools.setDown(dragoman.Failed, "maps")
		if err := there.db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE runs SET due = 1 WHERE state = 'waiting'")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := there.runs.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		names := kinds(there.events(id, -1))
		if status, body := there.got(id); status != "completed" || !slices.Contains(names, "mcp_call.completed") {
			t.Errorf("%v: %s", names, body)
		}
	}
}
