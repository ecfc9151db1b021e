// Package demo is the MCP server that Dragoman brings along, so that the first
// command a stranger types does its whole job: no key, no network, no second
// process.
//
// # What it offers
//
// Seven tools on bundled data, one of each kind that a gateway must treat
// differently:
//
//	get_weather          read-only lookup; an unknown city is a tool error
//	find_restaurant      read-only search; an empty list is a success
//	query_employee_tree  recursive result ($defs and $ref), bounded in depth and breadth
//	calculate_sum        exact decimal arithmetic, far beyond float64
//	analyze_csv          reports progress when the caller asks for it
//	create_record        changes something, destroys nothing, is not idempotent
//	delete_file          destructive, and confined to a scratch folder
//
// The CSV files can be read as resources (demo://files/{name}) and so can the
// records (demo://records/{table}/{id}); the prompt plan_day puts two of the
// tools to use, and its argument can be completed.
//
// The server is written with package toolkit and is an example of its use: the
// schemas come from the types here, in the order of their fields, arguments are
// checked against the very schema that was announced, and annotations state all
// four hints.
//
// # How to reach it
//
//	d := demo.New(demo.Options{})
//	defer d.Close()
//
// and then one, or all at the same time, of
//
//	d.ServeStdio(ctx, os.Stdin, os.Stdout) // newline-delimited JSON-RPC
//	http.ListenAndServe(addr, d.Handler()) // Streamable HTTP, both eras on one URL
//	r, w := d.Pipe(ctx)                    // the stdio wire inside this process
//
// All connections share one server: a record created over one is seen by the
// others.
//
// # What it touches
//
// [New] does no I/O. The scratch folder is created under [os.TempDir] when a
// tool first needs it, filled with a few sample files, reached through an
// [os.Root] only, and removed by [Demo.Close]. Nothing else is written, and
// nothing is ever fetched.
package demo
