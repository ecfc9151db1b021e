package api

import (
	"path/filepath"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// What a response has said is kept for a while, and its run for less long than what became
// of it: whoever follows it then is told, and gets the response itself.
func TestBackgroundIsGone(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "dragoman.db"))
	id := p.post(askWeather + "}")
	p.events(id, -1)
	for _, table := range []string{"run_events", "runs"} {
		if err := p.db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("DELETE FROM " + table)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		p.checkError(p.do("GET", "/v1/responses/"+id+"?stream=true&starting_after=2", ""), 400, "invalid_request")
		if status, body := p.got(id); status != "completed" {
			t.Errorf("without %s: %s", table, body)
		}
	}
}
