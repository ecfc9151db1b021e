package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	auditlog "github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	runs "github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/turns"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// writeLedger is the command "ledger" of the scripts: it does to the store what a
// gateway would have done.
func writeLedger() {
	if err := ledgerScript(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(1)
	}
}

func ledgerScript(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "waiting" {
		return awaitRun(ctx, args[1])
	}
	c, log, err := ledgerConfig("")
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, c, log)
	if err != nil {
		return err
	}
	defer l.Close()
	key := approval.Key{Caller: "key-1", Server: "files", Tool: "write_file", Pin: [32]byte{1}}
	switch strings.Join(args[:min(1, len(args))], "") {
	case "ask":
		for n := range 2 {
			a, err := l.Inbox.Ask(ctx, approval.Request{
				Key: key, Arguments: json.RawMessage(fmt.Sprintf(`{"text":"<b>\u001b[2J","n":900719925474099%d}`, 2+n)),
				Rule: "writes", Details: approval.Details{CallerName: "laptop", Reason: "Writing needs a yes.", Description: "\x1b]52;c;aGk=\a writes"},
			})
			if err != nil {
				return err
			}
			fmt.Println(a.ID)
		}
		return nil
	case "answer":
		return answerNth(args[1], args[2])
	case "remember":
		return remember(ctx, l, args[1:])
	case "tamper":
		return l.DB.Write(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE audit_records SET body = replace(body, 'key-1', 'key-9') WHERE seq = 3")
			return err
		})
	}
	return story(ctx, l, key)
}

// remember keeps something of owners, each a caller and perhaps a person, under keys.
func remember(ctx context.Context, l *ledger.Ledger, owners []string) error {
	file, err := (&selection{}).load(only(ledgerKeys...))
	if err != nil {
		return err
	}
	keys, err := vault.Open(ctx, l.DB, file.Store)
	if err != nil {
		return err
	}
	kept := turns.New(l.DB, keys, turns.Config{Bounds: turns.Bounds{Bytes: 1 << 20, TTL: time.Hour}})
	for _, owner := range owners {
		caller, person, _ := strings.Cut(owner, "/")
		if err := kept.Keep(ctx, caller+"\x00\""+person+"\"\x00\"\"\x00\"\"\x00", []string{"k"}, &memory.Turn{Text: "hidden"}); err != nil {
			return err
		}
	}
	return nil
}

// answerNth answers the question whose ID stands in that line of the file ids.
func answerNth(command, n string) error {
	ids, err := os.ReadFile("ids")
	if err != nil {
		return err
	}
	id := strings.Fields(string(ids))[n[0]-'1']
	cmd := exec.Command("dragoman", command, id[:6])
	if command == "deny" {
		cmd.Args = append(cmd.Args, "--why", "not on a Friday")
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// story is a call that was asked about, approved and made, and one that was denied.
func story(ctx context.Context, l *ledger.Ledger, key approval.Key) error {
	a, err := l.Inbox.Ask(ctx, approval.Request{Key: key, Arguments: json.RawMessage(`{}`), Rule: "writes"})
	if err != nil {
		return err
	}
	r := auditlog.Record{Kind: auditlog.Decision, Call: "call-1", Caller: key.Caller, CallerName: "ada\x1b", Server: key.Server, Target: key.Tool, Verdict: auditlog.Ask, Rule: "writes", Approval: a.ID}
	if err := l.Audit.Intent(ctx, r); err != nil {
		return err
	}
	if _, err := l.Inbox.Approve(ctx, a.ID, approval.Person{ID: "terminal:ada"}); err != nil {
		return err
	}
	r.Kind, r.Verdict = auditlog.Intent, auditlog.Allow
	if err := l.Audit.Intent(ctx, r, l.Inbox.Spend(a.ID, a.Key, "call-1")); err != nil {
		return err
	}
	r.Came(dragoman.Result{Content: json.RawMessage(`{}`), Ran: dragoman.RanYes, Info: dragoman.Info{Duration: 3 * time.Millisecond}})
	l.Audit.Append(r)
	l.Audit.Append(auditlog.Record{Kind: auditlog.Decision, Call: "call-2", Caller: "key-2", Server: "files", Target: "\x1b]52;c;x", Verdict: auditlog.Deny, Rule: "default"})
	return nil
}

// awaitRun waits until a run waits, a minute at most.
func awaitRun(ctx context.Context, configuration string) error {
	s, err := openRuns(ctx, configuration)
	if err != nil {
		return err
	}
	defer s.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 1200 {
		if all, err := s.runs.List(ctx, runs.Filter{State: runs.Waiting}); err != nil || len(all) > 0 {
			return err
		}
		<-tick.C
	}
	return errors.New("nothing waits")
}
