CREATE TABLE cont(present boolean PRIMARY KEY CHECK (present));
CREATE TABLE lst(name text COLLATE "C" PRIMARY KEY, item jsonb NOT NULL);
CREATE TABLE usr_lst(k bigint PRIMARY KEY, rank bigint NOT NULL, entry jsonb NOT NULL);
CREATE INDEX usr_lst_rank ON usr_lst(rank);
