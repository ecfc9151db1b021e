package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
)

// A replicaStatus is how a gateway that serves on the store stands.
type replicaStatus struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Setup   string    `json:"setup"`
	Address string    `json:"address,omitempty"`
	Began   time.Time `json:"began"`
	// Heard is how long ago it said that it lives, and Alive whether it is taken to.
	Heard int64 `json:"heard_ms"`
	Alive bool  `json:"alive"`
	// Clock is how far its clock is ahead of the database's.
	Clock int64 `json:"clock_ms"`
}

func replicasOf(standings []nodes.Standing) []replicaStatus {
	all := make([]replicaStatus, len(standings))
	for i, s := range standings {
		all[i] = replicaStatus{
			ID: s.ID, Version: s.Version, Setup: s.Setup, Address: s.Address, Began: s.Began,
			Heard: s.Silent.Milliseconds(), Alive: s.Alive, Clock: s.Ahead.Milliseconds(),
		}
	}
	return all
}

// doubts are what somebody should look at among replicas, a sentence each.
func doubts(standings []nodes.Standing) (all []string) {
	setups, versions := map[string][]string{}, map[string][]string{}
	for _, s := range standings {
		switch {
		case !s.Alive:
			all = append(all, fmt.Sprintf("%s was last heard %s ago and is taken for dead: it was killed, is stopped, or does not reach the database.", s.ID, brief(s.Silent)))
			continue
		case s.Ahead > nodes.Skew:
			all = append(all, fmt.Sprintf("The clock of %s is %s ahead of the database's: set it by NTP.", s.ID, brief(s.Ahead)))
		case s.Skewed():
			all = append(all, fmt.Sprintf("The clock of %s is %s behind the database's: set it by NTP.", s.ID, brief(-s.Ahead)))
		}
		setups[s.Setup] = append(setups[s.Setup], s.ID)
		versions[s.Version] = append(versions[s.Version], s.ID)
	}
	if len(setups) > 1 {
		all = append(all, fmt.Sprintf("Their configurations differ (%s): give all of them the same files, and reload.", groups(standings, setups, func(s nodes.Standing) string { return s.Setup })))
	}
	if len(versions) > 1 {
		all = append(all, fmt.Sprintf("Their versions differ (%s): two that follow each other can work side by side for as long as an upgrade takes.", groups(standings, versions, func(s nodes.Standing) string { return s.Version })))
	}
	return all
}

// groups words who is alike, in the order of the replicas.
func groups(standings []nodes.Standing, by map[string][]string, of func(nodes.Standing) string) string {
	var words []string
	for _, s := range standings {
		if ids := by[of(s)]; s.Alive && ids[0] == s.ID {
			words = append(words, fmt.Sprintf("%s: %s", of(s), strings.Join(ids, ", ")))
		}
	}
	return strings.Join(words, "; ")
}

func brief(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// showReplicas shows the gateways that serve on the store; nothing where none says so.
func showReplicas(out io.Writer, standings []nodes.Standing, warn func(string) string) error {
	if len(standings) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nREPLICA\tVERSION\tSETUP\tADDRESS\tSINCE\tHEARD\tCLOCK")
	for _, s := range standings {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s ago\t%+d ms\n", s.ID, s.Version, s.Setup, s.Address, s.Began.Local().Format(time.DateTime), brief(s.Silent), s.Ahead.Milliseconds())
	}
	err := table.Flush()
	for _, doubt := range doubts(standings) {
		fmt.Fprintf(out, "%s %s\n", warn("!"), doubt)
	}
	return err
}
