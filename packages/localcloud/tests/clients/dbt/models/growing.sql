{{ config(materialized='incremental', unique_key='id') }}
select id, name, current_timestamp() as loaded from {{ ref('people') }}
{% if is_incremental() %} where id >= (select max(id) from {{ this }}) {% endif %}
