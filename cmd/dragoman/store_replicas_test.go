package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestReplicaDoubts: what is odd about replicas is said, and nothing where nothing is.
func TestReplicaDoubts(t *testing.T) {
	at := func(n int, change func(*nodes.Standing)) nodes.Standing {
		s := nodes.Standing{ID: fmt.Sprint("n", n), Info: nodes.Info{Version: "1.2", Setup: "aa"}, Alive: true, Silent: time.Second, Ahead: 4 * time.Second}
		if change != nil {
			change(&s)
		}
		return s
	}
	for _, c := range []struct {
		all  []nodes.Standing
		want []string
	}{
		{all: []nodes.Standing{at(1, nil), at(2, nil)}},
		{all: []nodes.Standing{at(1, nil), at(2, func(s *nodes.Standing) { s.Alive, s.Silent, s.Setup = false, 61*time.Second, "bb" })},
			want: []string{"n2 was last heard 1m1s ago and is taken for dead: it was killed, is stopped, or does not reach the database."}},
		{all: []nodes.Standing{at(1, func(s *nodes.Standing) { s.Ahead = 6 * time.Second }), at(2, func(s *nodes.Standing) { s.Ahead = -90 * time.Second })},
			want: []string{"The clock of n1 is 6s ahead of the database's: set it by NTP.", "The clock of n2 is 1m30s behind the database's: set it by NTP."}},
		{all: []nodes.Standing{at(1, nil), at(2, func(s *nodes.Standing) { s.Setup = "bb" }), at(3, nil)},
			want: []string{"Their configurations differ (aa: n1, n3; bb: n2): give all of them the same files, and reload."}},
		{all: []nodes.Standing{at(1, nil), at(2, func(s *nodes.Standing) { s.Version = "1.3" })},
			want: []string{"Their versions differ (1.2: n1; 1.3: n2): two that follow each other can work side by side for as long as an upgrade takes."}},
	} {
		if diff := cmp.Diff(c.want, doubts(c.all)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestStoreStatusReplicas: the status of a store lists who serves on it.
func TestStoreStatusReplicas(t *testing.T) {
	where := store.Config{URL: secret.New(pgtest.URL(t))}
	db, err := store.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := range 3 {
		if _, err := nodes.Join(t.Context(), db, nodes.Info{Version: "1.2", Setup: fmt.Sprint("s", i/2), Address: fmt.Sprint("127.0.0.1:", i)}); err != nil {
			t.Fatal(err)
		}
	}
	status, err := statusOf(t.Context(), db, where)
	if err != nil {
		t.Fatal(err)
	}
	if len(status.Replicas) != 3 || status.Replicas[2].ID != "n3" || !status.Replicas[2].Alive || len(status.Doubts) != 1 {
		t.Errorf("%+v, %q", status.Replicas, status.Doubts)
	}
	var out strings.Builder
	if err := showReplicas(&out, status.nodes, func(mark string) string { return mark }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"REPLICA", "n1", "127.0.0.1:2", "! Their configurations differ (s0: n1, n2; s1: n3)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
