-- Entries that are not in order yet, which each look-up of a word reads: with 64 kB of them (4 MB without a number) long
-- questions to 1,800 memories take .1 s, not more than 1 s; writes cost the same.
ALTER INDEX quipu_data.doc_words_by_stem SET (gin_pending_list_limit = 64);
ALTER INDEX quipu_data.doc_trigrams_by_trigram SET (gin_pending_list_limit = 64);
