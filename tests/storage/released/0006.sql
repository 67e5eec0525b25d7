-- A playbook file as schema 0006 wrote it. Never edited.
PRAGMA application_id = 1094927686;
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0006');
CREATE TABLE api_keys (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	scopes TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	created_by TEXT NOT NULL, 
	revoked_at TEXT, 
	revoked_by TEXT, 
	PRIMARY KEY (id), 
	UNIQUE (hash)
);
INSERT INTO "api_keys" VALUES('key-1','gateway','sha256:00','decide outcomes','2024-05-01T12:30:00+00:00','ana',NULL,NULL);
CREATE TABLE cases (
	transaction_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	is_fraud BOOLEAN NOT NULL, 
	known_at TEXT, 
	body TEXT NOT NULL, time INTEGER, has_text BOOLEAN DEFAULT 0 NOT NULL, facts TEXT, reader TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (transaction_id), 
	UNIQUE (seq)
);
INSERT INTO "cases" VALUES('t1',1,1,'2024-05-01T12:30:00+00:00','{"transaction":{"id":"t1","time":null,"facts":{"amount":20.0,"vpn":true,"country":"1e5"},"text":""},"is_fraud":true,"known_at":"2024-05-01T12:30:00Z","difficulty":"","metadata":{}}',NULL,0,NULL,'1');
CREATE TABLE checkpoint_pages (
	number INTEGER NOT NULL, 
	"table" BLOB NOT NULL, 
	bullets BLOB NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "checkpoint_pages" VALUES(0,X'',X'7B226964223A226231222C22636F6E74656E74223A2256504E20616E642061206E6577206465766963653A206465636C696E65222C22737461747573223A2270696E6E6564222C227374617475735F6279223A22616E61227D');
CREATE TABLE checkpoints (
	id INTEGER NOT NULL CHECK (id = 1), 
	seq INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "checkpoints" VALUES(1,4,'{"fold":3,"seq":4,"revision":2,"outcomes":1,"bullets":1,"calibrations":{},"mapping":"","scales":{},"learning":{},"lists":{},"reviews":{},"taken_in":{}}');
CREATE TABLE common (
	"key" INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE decisions (
	seq INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	transaction_id TEXT NOT NULL, 
	at INTEGER NOT NULL, 
	who TEXT, 
	why TEXT, 
	verdict TEXT NOT NULL, 
	probability FLOAT NOT NULL, 
	revision INTEGER NOT NULL, 
	setup INTEGER, 
	names INTEGER, 
	body TEXT NOT NULL, 
	PRIMARY KEY (seq)
);
INSERT INTO "decisions" VALUES(3,'d1','t1',1714566600000000,'ana','a start','DECLINE',0.9,0,NULL,NULL,'{"id":"d1","transaction":{"id":"t1","time":null,"facts":{"amount":20.0,"vpn":true,"country":"1e5"},"text":""},"node":"fraud_detection","verdict":"DECLINE","probability":0.9,"threshold":0.5,"base":-1.25,"reasons":[],"facts":{},"unread":[],"reader":"","revision":0,"selection":{"stages":[],"scores":[],"revision":0,"seed":0,"embedder":"","settings":""},"model":"embedded","probability_from":"fitted","odds":null,"prompt":"","usage":null,"fallback":"","selection_fallback":""}');
CREATE TABLE events (
	seq INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	"key" TEXT, 
	at TEXT NOT NULL, 
	who TEXT NOT NULL, 
	why TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (seq)
);
INSERT INTO "events" VALUES(1,'bullet_added','b1',NULL,'2024-05-01T12:30:00+00:00','ana','a start','{"kind":"bullet_added","bullet":{"id":"b1","content":"VPN and a new device: decline","node":"fraud_detection","source":"manual","status":"active","status_by":"","argues":null,"condition":null,"evidence":null,"claim":null,"weight":null,"contradicts":[],"problem_types":[],"added_at":null,"helpful_count":0,"harmful_count":0,"times_selected":0,"record":{"support":0,"frauds":0}},"reason":""}');
INSERT INTO "events" VALUES(2,'status_changed','b1',NULL,'2024-05-01T12:30:00+00:00','ana','a start','{"kind":"status_changed","bullet_id":"b1","status":"pinned","reason":""}');
INSERT INTO "events" VALUES(4,'outcome_heard','t1','t1:label:DECLINE:','2024-05-01T12:30:00+00:00','ana','a start','{"kind":"outcome_heard","node":"fraud_detection","outcome":{"transaction_id":"t1","is_fraud":true,"source":"label","id":"","at":null},"decision_id":null,"judgement":{"ruling":"correct","confidence":1.0,"reason":""},"credits":[],"remembered":false}');
CREATE TABLE history (
	"key" TEXT NOT NULL, 
	value BLOB NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "history" VALUES('e:card:c1',X'7B226E223A317D');
CREATE TABLE meta (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "meta" VALUES('application','acefraud');
CREATE TABLE requests (
	"key" TEXT NOT NULL, 
	transaction_id TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	decision_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "requests" VALUES('k1','t1','0123abcd','d1',4);
CREATE INDEX events_by_kind_and_subject ON events (kind, subject);
CREATE INDEX events_by_key ON events ("key");
CREATE INDEX events_by_kind ON events (kind, seq);
CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are only ever appended'); END;
CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are only ever appended'); END;
CREATE TRIGGER decisions_refuse_update BEFORE UPDATE ON decisions BEGIN SELECT RAISE(ABORT, 'decisions are only ever appended'); END;
CREATE TRIGGER events_refuse_gaps BEFORE INSERT ON events WHEN NEW.seq IS NOT 1 + max(coalesce((SELECT max(seq) FROM events), 0), coalesce((SELECT max(seq) FROM decisions), 0)) BEGIN SELECT RAISE(ABORT, 'events are only ever appended, without gaps'); END;
CREATE TRIGGER decisions_refuse_gaps BEFORE INSERT ON decisions WHEN NEW.seq IS NOT 1 + max(coalesce((SELECT max(seq) FROM events), 0), coalesce((SELECT max(seq) FROM decisions), 0)) BEGIN SELECT RAISE(ABORT, 'decisions are only ever appended, without gaps'); END;
CREATE INDEX decisions_by_id ON decisions (id);
CREATE INDEX decisions_by_transaction ON decisions (transaction_id);
CREATE INDEX requests_by_transaction ON requests (transaction_id);
CREATE INDEX decisions_by_time ON decisions (at);
CREATE UNIQUE INDEX api_keys_by_live_name ON api_keys (name) WHERE revoked_at IS NULL;
COMMIT;
