// Tickets is an MCP server for a ticket tracker in an SQLite file: search, read,
// create, change, comment, delete. It shows users with rights, what a user may not
// do, changes that tell absent from null, flags of one's own, and a database that
// is closed at the end.
//
//	go run . --db tickets.db
//	go run . --db tickets.db --keys keys.jsonl --new-key ada --rights tickets:read,tickets:write
//	go run . --db tickets.db --keys keys.jsonl --http :8080
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/dragoman-mcp/dragoman/examples/tickets/tracker"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

func main() {
	file := flag.String("db", "tickets.db", "`file` of the tracker")
	line := toolkit.Flags(flag.CommandLine)
	flag.Parse()
	db, err := tracker.Open(context.Background(), *file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := newServer(db)
	s.OnStop(func(context.Context) error { return db.Close() })
	line.Main(s)
}

type (
	ticketID struct {
		ID int64 `json:"id" desc:"Number of the ticket" min:"1"`
	}
	draft struct {
		Title string `json:"title" desc:"What is to be done, in a few words" min:"1" max:"200"`
		Body  string `json:"body" desc:"Details" default:"" max:"20000"`
		Due   string `json:"due,omitempty" desc:"Day it must be done" format:"date"`
	}
	query struct {
		Words  string `json:"words,omitempty" desc:"Part of the title or the body" max:"100"`
		Status string `json:"status,omitempty" desc:"Only tickets with this status" enum:"open,doing,done"`
	}
	change struct {
		ticketID
		Title  toolkit.Optional[string] `json:"title,omitzero" desc:"New title" min:"1" max:"200" nullable:"false"`
		Body   toolkit.Optional[string] `json:"body,omitzero" desc:"New details" max:"20000" nullable:"false"`
		Status toolkit.Optional[string] `json:"status,omitzero" desc:"New status" enum:"open,doing,done" nullable:"false"`
		Due    toolkit.Optional[string] `json:"due,omitzero" desc:"New day it must be done; null: none any more" format:"date"`
	}
	remark struct {
		ticketID
		Text string `json:"text" desc:"The comment" min:"1" max:"5000"`
	}
	comment struct {
		Author string    `json:"author" md:"name"`
		Text   string    `json:"text"`
		At     time.Time `json:"at"`
	}
	ticket struct {
		ID       int64     `json:"id" md:"id"`
		Title    string    `json:"title" md:"name"`
		Status   string    `json:"status"`
		Due      string    `json:"due,omitempty"`
		Author   string    `json:"author"`
		Created  time.Time `json:"created"`
		Body     string    `json:"body,omitempty"`
		Comments []comment `json:"comments,omitempty"`
	}
	deleted struct {
		ID int64 `json:"id" desc:"The ticket that is gone"`
	}
)

const read, write, admin = "tickets:read", "tickets:write", "tickets:admin"

func newServer(db *tracker.Tracker) *toolkit.Server {
	s := toolkit.NewServer(toolkit.Options{
		Service: "tickets", Title: "Tickets", Version: "1.0.0",
		Instructions: "A ticket tracker. Search before you create.",
		UserRate:     toolkit.Rate{PerSecond: 5, Burst: 20},
	})
	tool := func(name, title, description, ask, arguments, right string, h toolkit.Hints) toolkit.Tool {
		h.OpenWorld = toolkit.No
		return toolkit.Tool{
			Name: "tickets_" + name, Title: title, Description: description, Hints: h, Requires: []string{right},
			Examples: []toolkit.Example{{Ask: ask, Arguments: arguments}},
		}
	}
	reads := toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes}
	adds := toolkit.Hints{ReadOnly: toolkit.No, Destructive: toolkit.No, Idempotent: toolkit.No}
	changes := toolkit.Hints{ReadOnly: toolkit.No, Destructive: toolkit.Yes, Idempotent: toolkit.Yes}

	toolkit.AddList(s, tool("search_tickets", "Search", "Searches tickets, newest first, without their bodies.", "What is open?", `{"status":"open"}`, read, reads),
		func(ctx context.Context, q query, p toolkit.Page) (toolkit.Listing[ticket], error) {
			found, total, err := db.Search(ctx, q.Words, q.Status, p.Limit, p.Offset)
			list := make([]ticket, len(found))
			for i, k := range found {
				k.Body = ""
				list[i] = show(k)
			}
			return toolkit.Listing[ticket]{Items: list, Total: total}, err
		})
	toolkit.Add(s, tool("get_ticket", "Ticket", "Returns one ticket with its comments.", "What is ticket 7 about?", `{"id":7}`, read, reads),
		func(ctx context.Context, in ticketID) (ticket, error) { return one(db.Get(ctx, in.ID)) })
	toolkit.Add(s, tool("create_ticket", "Create", "Creates a ticket and returns it.", "The printer is on fire", `{"title":"Printer is on fire","due":"2026-05-01"}`, write, adds),
		func(ctx context.Context, in draft) (ticket, error) {
			return one(db.Create(ctx, in.Title, in.Body, in.Due, author(ctx)))
		})
	toolkit.Add(s, tool("update_ticket", "Change", "Changes a ticket and returns it. What is left out stays.", "Ticket 7 is done", `{"id":7,"status":"done"}`, write, changes),
		func(ctx context.Context, in change) (ticket, error) {
			return one(db.Update(ctx, in.ID, tracker.Change{Title: given(in.Title), Body: given(in.Body), Status: given(in.Status), Due: given(in.Due)}))
		})
	toolkit.Add(s, tool("add_comment", "Comment", "Adds a comment to a ticket and returns the ticket.", "Tell them that I am on it", `{"id":7,"text":"I am on it."}`, write, adds),
		func(ctx context.Context, in remark) (ticket, error) {
			return one(db.Comment(ctx, in.ID, author(ctx), in.Text))
		})
	toolkit.Add(s, tool("delete_ticket", "Delete", "Deletes a ticket and its comments for good.", "Throw ticket 7 away", `{"id":7}`, admin, changes),
		func(ctx context.Context, in ticketID) (deleted, error) {
			_, err := one(tracker.Ticket{}, db.Delete(ctx, in.ID))
			return deleted(in), err
		})
	toolkit.AddTemplate(s, toolkit.Resource{URI: "tickets://{id}", Name: "ticket", Description: "One ticket.", MIMEType: "text/plain", Requires: []string{read}},
		func(ctx context.Context, in ticketID) (toolkit.Contents, error) {
			k, err := one(db.Get(ctx, in.ID))
			return toolkit.Contents{Text: fmt.Sprintf("%s (%s)\n\n%s", k.Title, k.Status, k.Body)}, err
		})
	return s
}

// author is who asks.
func author(ctx context.Context) string {
	if r := toolkit.RequestFrom(ctx); !r.IsOwner() {
		return r.User
	}
	return "owner"
}

// given is nil for what stays as it is.
func given(o toolkit.Optional[string]) *string {
	if !o.Present {
		return nil
	}
	return &o.Value
}

func one(k tracker.Ticket, err error) (ticket, error) {
	if errors.Is(err, tracker.ErrNotFound) {
		err = toolkit.NotFound("There is no such ticket. Find its number with tickets_search_tickets.")
	}
	return show(k), err
}

func show(k tracker.Ticket) ticket {
	out := ticket{ID: k.ID, Title: k.Title, Status: k.Status, Due: k.Due, Author: k.Author, Created: k.Created, Body: k.Body}
	for _, c := range k.Comments {
		out.Comments = append(out.Comments, comment(c))
	}
	return out
}
