{{ config(materialized='incremental', incremental_strategy='insert_overwrite',
          partition_by={'field': 'day', 'data_type': 'date'}, cluster_by=['id']) }}
select id, coalesce(born, date '2002-02-02') as day from {{ ref('people') }}
{% if is_incremental() %} where id = 1 {% endif %}
